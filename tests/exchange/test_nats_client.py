"""The protocol's lines and messages, from servers that are not what they should be."""

import socket
import threading
import time

import pytest

from privada.exceptions import CourierError
from privada.exchange.nats_client import (
    Connection,
    ProtocolError,
    Stream,
    join_pieces,
    read_message,
    write_message,
)

INFO = b'INFO {"max_payload":1048576}\r\n'


@pytest.fixture
def hostile():
    """A function that starts a server that says the given bytes to whoever connects; its address."""
    servers = []

    def start(*said):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def speak():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.sendall(b"".join(said))
                    client.settimeout(5)
                    try:
                        while client.recv(4096):
                            pass
                    except OSError:
                        pass

        threading.Thread(target=speak, daemon=True).start()
        return server.getsockname()

    yield start
    for server in servers:
        server.close()


def read(address):
    stream = Stream(address, tls=None, seconds=5)
    try:
        return read_message(stream.read_line(5), stream, 5)
    finally:
        stream.close()


def test_a_message_is_read_with_its_headers(hostile):
    head = b"NATS/1.0\r\nNats-Subject: a.b\r\nodd line\r\n\r\n"
    line = f"HMSG a.b 7 {len(head)} {len(head) + 3}\r\n".encode()
    found = read(hostile(line, head, b"xyz\r\n"))
    assert (found.sid, found.subject, found.data, found.status) == (7, "a.b", b"xyz", "")
    assert found.headers == {"Nats-Subject": "a.b"}


def test_a_status_is_read(hostile):
    head = b"NATS/1.0 404 Message Not Found\r\n\r\n"
    found = read(hostile(f"HMSG a 7 {len(head)} {len(head)}\r\n".encode(), head, b"\r\n"))
    assert (found.status, found.data) == ("404", b"")


@pytest.mark.parametrize(
    "said",
    [
        b"MSG a 1 5000000000\r\n",
        b"MSG a 1 -5\r\n",
        b"MSG a one 5\r\n",
        b"MSG\r\n",
        b"HMSG a 1 9 5\r\n",
        b"HMSG a 1 5\r\n",
        b"MSG a 1 2\r\nabcd\r\n",
        b"x" * 100_000,
    ],
)
def test_other_messages_end_the_connection_before_they_are_read(hostile, said):
    with pytest.raises(ProtocolError):
        read(hostile(said))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no NATS server"),
        (b"INFO nonsense\r\n", "no NATS server"),
        (b"INFO [1]\r\n", "no NATS server"),
        (b'INFO {"max_payload":"much"}\r\n', "no NATS server"),
        (b'INFO {"tls_required":true}\r\n', "it wants TLS"),
        (INFO + b"-ERR 'Authorization Violation'\r\n", "Authorization Violation"),
        (INFO, "no answer"),
        (b"", "no answer"),
    ],
)
def test_who_is_no_server_or_lets_nobody_in_is_named(hostile, said, why):
    host, port = hostile(said)
    with pytest.raises(CourierError, match=why):
        Connection([f"nats://{host}:{port}"], patience=0.5)


def test_a_server_that_breaks_off_is_asked_again_and_given_up(hostile):
    host, port = hostile(INFO + b"PONG\r\nMSG a 1 99999999999\r\n")
    connection = Connection([f"nats://{host}:{port}"], patience=1)
    with pytest.raises(CourierError, match="cannot be used"):
        connection.request("a.b")
    connection.close()


def test_what_is_written_is_what_the_protocol_says():
    assert b"".join(write_message("a", "b", {}, b"xy")) == b"PUB a b 2\r\nxy\r\n"
    assert b"".join(write_message("a", "b", {"K": "v"}, b"xy")) == (
        b"HPUB a b 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nxy\r\n"
    )


@pytest.mark.parametrize("sizes", [(0,), (3, 0, 2), (200, 1 << 18, 2), (200, 10**6, 2), (1 << 18, 1 << 19)])
def test_pieces_are_joined_in_order_injoin_pieces_of_bounded_size(sizes):
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    blocks = [bytes(block) for block in join_pieces(pieces)]
    assert b"".join(blocks) == b"".join(pieces)
    assert all(len(block) == 1 << 18 for block in blocks[:-1])
    assert len(blocks) == -(-sum(sizes) // (1 << 18))


def test_a_server_that_stays_away_is_one_error_after_the_stated_time(own_nats_server, connect):
    with connect(own_nats_server, patience=0.5) as courier:
        courier.create_exchange()
        own_nats_server.kill()
        for action in (lambda: courier.put("a/b", b""), lambda: courier.get("a/b"), lambda: courier.keys("")):
            started = time.monotonic()
            with pytest.raises(CourierError, match=r"127.0.0.1:\d+ cannot be used .*0.5 s"):
                action()
            assert 0.3 < time.monotonic() - started < 3
        with pytest.raises(CourierError, match="cannot be used"):
            connect(own_nats_server, patience=0.3)


def test_a_server_without_this_exchange_says_so(nats_server, connect):
    with connect(nats_server, patience=0.3, exchange="nobody-made-it") as courier:
        with pytest.raises(CourierError, match="holds no such exchange"):
            courier.put("a/b", b"")


def test_close_ends_the_thread_and_may_be_repeated(own_nats_server, connect):
    courier = connect(own_nats_server)
    thread = courier._connection._thread
    courier.close()
    courier.close()
    assert not thread.is_alive()


def test_a_request_that_was_sent_twice_counts_once(courier, monkeypatch):
    """The reply was lost: the same message is sent again and is still the first."""
    attempt, sent = courier._connection.request_once, []

    def lose_first_reply(subject, payload, *, headers=None, seconds):
        reply = attempt(subject, payload, headers=headers, seconds=seconds)
        sent.append(headers)
        if len(sent) == 1:
            raise OSError("the reply is lost")
        return reply

    monkeypatch.setattr(courier._connection, "request_once", lose_first_reply)
    assert courier.put("a/b", b"x") is True
    assert sent[0] == sent[1]
    assert courier.put("a/b", b"x") is False
