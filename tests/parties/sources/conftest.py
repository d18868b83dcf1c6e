"""Real servers for sources of rows: PostgreSQL and an S3 store, started once and stopped."""

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from benchmarks._postgres import NoServerError, database, server
from privada.parties import Category, Date, Number, Schema

SCHEMA = Schema(
    columns=[
        Number(name="Age", low=0, high=120, missing=True),
        Category(name="ward", values=("a", 'b"c'), missing=True),
        Date(name="seen", first="2020-01-01", last="2025-01-01"),
    ],
    label=Category(name="ill", values=(False, True)),
)
LINES = [
    (i % 130 if i % 7 else None, ("a", 'b"c', None)[i % 3], f"202{i % 5}-02-03", i % 2 == 0)
    for i in range(500)
]


@pytest.fixture
def schema():
    return SCHEMA


@pytest.fixture
def lines():
    return LINES


@pytest.fixture(scope="session")
def postgres_server():
    with ExitStack() as stack:
        try:
            yield stack.enter_context(server())
        except NoServerError as error:
            pytest.skip(str(error))


@pytest.fixture
def postgres(postgres_server):
    """The URL of an own database, as psycopg and ADBC write it."""
    with database(postgres_server) as url:
        yield url.replace("postgresql+psycopg", "postgresql")


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A client of an S3 server with the bucket "rows"; the environment has its credentials."""
    boto3 = pytest.importorskip("boto3")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = {
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    with (tmp_path_factory.mktemp("s3") / "log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _await(port, process)
            for name, value in names.items():
                patch.setitem(os.environ, name, value)
            client = boto3.client("s3", endpoint_url=names["AWS_ENDPOINT"], region_name="us-east-1")
            client.create_bucket(Bucket="rows")
            yield client
            client.close()
        finally:
            process.terminate()
            process.wait(timeout=10)


def _await(port, process):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended at once"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail("the server did not start")
