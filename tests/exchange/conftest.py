"""Real servers for the couriers: each starts once, on a free port, and is stopped at the end."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process, seconds=20.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended at once"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail("the server did not start")


def stop(process):
    process.terminate()
    process.wait(timeout=10)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """An S3 server with one bucket; the environment has its credentials."""
    pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = Path(tmp_path_factory.mktemp("s3") / "log")
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
    names = {
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    try:
        await_port(port, process)
        client = boto3.client(
            "s3",
            endpoint_url=names["AWS_ENDPOINT"],
            region_name="us-east-1",
            aws_access_key_id="tests",
            aws_secret_access_key="tests-secret",
        )
        client.create_bucket(Bucket="exchange")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in names.items():
                patch.setitem(os.environ, name, value)
            yield names["AWS_ENDPOINT"]
    finally:
        stop(process)
