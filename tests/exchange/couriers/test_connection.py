"""A server that goes away, has no such exchange, or does not answer."""

import time

import pytest

from privada.exceptions import CourierError


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
