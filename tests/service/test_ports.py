"""Few connections, short ones, and few lines about them, on every local port."""

import asyncio
import json
import logging
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager

import pytest

from benchmarks.faults import crowd_serving_owner
from privada.service import ports
from privada.service.metrics import Metrics, publish
from privada.service.ports import HOST, listen
from privada.service.web import run_pages

HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"


async def say_hello(scope, receive, send):
    """A page that reads its request's body first."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ValueError("SECRET of a page")
        more = message.get("more_body", False)
    if scope["path"] == "/failure":
        raise ValueError("SECRET of a page")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def published():
    metrics = Metrics()
    metrics.connect("clinic")
    with publish(metrics, 0) as port:
        yield port


@contextmanager
def hosted():
    listening = listen("--console-port", 0)
    with run_pages(say_hello, listening):
        yield listening.getsockname()[1]


both = pytest.mark.parametrize("served", [published, hosted])


def is_answered(port):
    with urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=5) as reply:
        return reply.status == 200


def connect(port, sent=b""):
    client = socket.create_connection((HOST, port), timeout=5)
    client.sendall(sent)
    return client


def seconds_until_dropped(client, *, drip=b""):
    """How long a connection lasts, while bytes are sent one by one."""
    started = time.monotonic()
    client.settimeout(0.05)
    with client:
        while time.monotonic() - started < 5:
            try:
                if drip:
                    client.sendall(drip)
                if not client.recv(100):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    return time.monotonic() - started


@both
@pytest.mark.parametrize("sent", [b"", HEAD])
@pytest.mark.parametrize("drip", [b"", b"x"])
def test_a_request_that_does_not_arrive_is_dropped(served, sent, drip, monkeypatch):
    monkeypatch.setattr(ports, "ARRIVAL", 0.4)
    with served() as port:
        sent = sent % port + b"X-Padding: " if sent else sent
        assert 0.3 < seconds_until_dropped(connect(port, sent), drip=drip) < 2
        assert is_answered(port)


@pytest.mark.parametrize(
    ("size", "reasons"),
    [(60_000, {"too slow"}), (1_000_000, {"too slow", "ValueError"})],  # only a large one is read by the page
)
def test_a_body_that_does_not_arrive_is_dropped_without_a_traceback(size, reasons, monkeypatch, caplog):
    monkeypatch.setattr(ports, "ARRIVAL", 0.2)
    monkeypatch.setattr(ports, "WHOLE", 0.8)
    with hosted() as port:
        sent = (HEAD % port).replace(b"GET", b"POST") + b"Content-Length: %d\r\n\r\n" % size
        assert 0.7 < seconds_until_dropped(connect(port, sent), drip=b"x") < 3
        assert is_answered(port)
    assert {record.reason for record in caplog.records} == reasons
    assert not any(record.exc_info for record in caplog.records)
    assert "SECRET" not in caplog.text


def test_a_form_that_comes_in_pieces_and_a_second_request_arrive_whole():
    received = []

    async def page(scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body", False)
        received.append((scope["method"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    listening = listen("--console-port", 0)
    with run_pages(page, listening), ExitStack() as stack:
        client, other = (stack.enter_context(connect(listening.getsockname()[1])) for _ in range(2))
        for sizes in ((1, 0), (100, 7), (0, 99_000)):
            form = b"a" * sum(sizes)
            sent = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(form) + form
            for start in range(0, len(sent), 1 + len(sent) // 7):
                client.sendall(sent[start : start + 1 + len(sent) // 7])
                time.sleep(0.01)
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        other.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert other.recv(1000).startswith(b"HTTP/1.1 100")
        other.sendall(b"abc")
        assert other.recv(1000).startswith(b"HTTP/1.1 200")
    assert [(method, len(body)) for method, body in received] == [("POST", n) for n in (1, 107, 99_000, 3)]


@both
def test_one_more_than_the_limit_makes_the_oldest_go(served, monkeypatch):
    monkeypatch.setattr(ports, "MOST", 8)
    with served() as port, ExitStack() as stack:
        clients = [stack.enter_context(connect(port, HEAD % port)) for _ in range(40)]
        assert is_answered(port)
        time.sleep(0.2)
        open_still = 0
        for client in clients:
            client.settimeout(0.01)
            try:
                open_still += client.recv(10) != b""
            except TimeoutError:
                open_still += 1
            except OSError:
                pass
        assert 0 < open_still <= 8


def test_a_request_that_is_being_answered_does_not_make_room(monkeypatch):
    monkeypatch.setattr(ports, "MOST", 8)
    finished = []

    async def page(scope, receive, send):
        if scope["path"] == "/slow":
            await asyncio.sleep(0.5)
            finished.append(scope["path"])
        await say_hello(scope, receive, send)

    listening = listen("--console-port", 0)
    with run_pages(page, listening), ExitStack() as stack:
        port = listening.getsockname()[1]
        slow = stack.enter_context(connect(port, (HEAD % port).replace(b"/health", b"/slow") + b"\r\n"))
        time.sleep(0.1)
        for _ in range(40):
            stack.enter_context(connect(port))
        assert slow.recv(20).startswith(b"HTTP/1.1 200")
    assert finished == ["/slow"]


@both
def test_the_log_has_a_line_for_each_reason_whatever_clients_do(served, monkeypatch, caplog):
    monkeypatch.setattr(ports, "MOST", 4)
    with served() as port:
        for number in range(200):
            with connect(port, [b"", b"junk\r\n\r\n", HEAD % port][number % 3]):
                pass
        with ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(connect(port))
            assert is_answered(port)
    assert {record.name for record in caplog.records} <= {"privada.service"}
    assert len(caplog.records) <= 6
    assert max(record.count for record in caplog.records if record.reason == "too many connections") >= 40


def test_an_error_of_a_page_is_named_by_its_type(caplog):
    with hosted() as port, connect(port, (HEAD % port).replace(b"/health", b"/failure") + b"\r\n") as client:
        assert client.recv(20).startswith(b"HTTP/1.1 500")
    (record,) = caplog.records
    assert (record.name, record.levelno, record.reason) == ("privada.service", logging.WARNING, "ValueError")
    assert "SECRET" not in caplog.text


def test_other_threads_log_as_before(caplog):
    with published():
        logging.getLogger("asyncio").warning("of somebody else's loop")
    assert "somebody else's loop" in caplog.text


def test_metrics_are_shown_to_this_machine_only(monkeypatch):
    def status(host):
        lines = b"GET /metrics HTTP/1.1\r\n" + b"".join(b"Host: %s\r\n" % name for name in host) + b"\r\n"
        with connect(port, lines) as client:
            return int(client.recv(100).split(b" ")[1])

    with published() as port:
        own = b"127.0.0.1:%d" % port
        assert status([own]) == status([b"localhost:%d" % port]) == 200
        for others in (
            [b"evil.example"],
            [b"evil.example:%d" % port],
            [],
            [own, b"evil.example"],
            [b"127.0.0.1"],
        ):
            assert status(others) == 421, others


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"HEAD /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 405),
        (b"\r\n\r\n", 400),
        (b"\xff\xfe\xff\r\n\r\n", 400),
        (b"GET /" + b"x" * 20_000, 400),
    ],
)
def test_what_is_no_request_for_a_page_gets_an_answer(sent, status):
    with published() as port, connect(port, sent.replace(b"%d", b"%d" % port)) as client:
        assert int(client.recv(100).split(b" ")[1]) == status


OUT_OF_DESCRIPTORS = """
import json, os, socket, sys, time
from privada.service.log import json_log
from privada.service.metrics import Metrics, publish
from privada.service.ports import listen
from privada.service.web import run_pages

async def page(scope, receive, send): ...

console = listen("--console-port", 0)
with json_log(sys.stderr), publish(Metrics(), 0) as port, run_pages(page, console):
    clients = [socket.socket() for _ in range(2 * 20)]
    time.sleep(0.5)
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for number, client in enumerate(clients):
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port if number % 2 else console.getsockname()[1]))
    before = time.process_time()
    time.sleep(3)
    print(time.process_time() - before)
    for descriptor in taken:
        os.close(descriptor)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits its descriptors")
def test_a_process_without_descriptors_does_not_spin():
    program = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n{OUT_OF_DESCRIPTORS}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert float(done.stdout) < 0.5, "processor seconds in three seconds of waiting"
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["reason"] for line in lines} >= {"EMFILE"}
    assert len(lines) < 20


@pytest.mark.skipif(sys.platform == "win32", reason="limits its descriptors")
def test_an_owner_answers_whatever_slow_clients_do(tmp_path):
    counts = crowd_serving_owner(tmp_path, seconds=5.0)
    assert counts["connections"] == 2400
    assert counts["tries"] >= 1
    wrong = {name: count for name, count in counts.items() if name.endswith("_unanswered") and count}
    assert not wrong, counts
    assert counts["log_bytes"] < 20_000
    assert counts["descriptors"] <= 256
