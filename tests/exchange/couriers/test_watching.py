"""Keys as they arrive, whatever happens to the server."""

import json
import threading

import pytest

from privada.exceptions import CourierError
from privada.exchange.couriers.protocol import Message


def test_a_watch_that_missed_something_starts_again(courier):
    courier.put("q/a", b"x")
    assert courier.wait("q/", known=(), seconds=5) == ["q/a"]
    watch = courier._watches["q/"]
    watch.keys.clear()
    watch._missed = True
    assert courier.wait("q/", known=(), seconds=5) == ["q/a"]


def test_a_watch_that_gets_no_answer_is_begun_anew_at_another_place(courier, monkeypatch):
    """A cluster may give a watch to a server that has just died; asking for the same one again never ends."""
    once, asked = courier._connection.request_once, []

    def lose_first_two(subject, data, *, headers=None, seconds):
        if "CONSUMER.CREATE" in subject:
            asked.append(json.loads(data)["config"])
            if len(asked) < 3:
                raise TimeoutError
        return once(subject, data, headers=headers, seconds=seconds)

    monkeypatch.setattr(courier._connection, "request_once", lose_first_two)
    courier.put("q/a", b"x")
    assert courier.keys("q/") == ["q/a"]
    assert len({each["name"] for each in asked}) == 3
    assert len({each["deliver_subject"] for each in asked}) == 3


def test_a_wait_goes_on_when_the_server_comes_back(courier, own_nats_server, connect):
    def restart_and_write():
        own_nats_server.kill()
        own_nats_server.start()
        with connect(own_nats_server) as other:
            other.put("q/a", b"x")

    writing = threading.Timer(0.2, restart_and_write)
    writing.start()
    assert courier.wait("q/", known=(), seconds=20) == ["q/a"]
    writing.join()


def test_what_has_no_key_is_passed_over(courier):
    for subject in ("privada.trial.a.é", "privada.trial.a.=x", "privada.trial.a.x="):
        reply = courier._connection.request(subject, b"x")
        assert b"error" not in reply.data
    courier.put("a/b", b"x")
    assert courier.keys("") == ["a/b"]


def test_a_list_is_whole_while_the_server_is_killed_again_and_again(courier, own_nats_server):
    keys = [f"q/{number:02d}" for number in range(40)]
    for key in keys:
        courier.put(key, b"x")
    done = threading.Event()

    def kill_and_start():
        for _ in range(3):
            own_nats_server.kill()
            own_nats_server.start()
            done.wait(0.15)
        done.set()

    killing = threading.Thread(target=kill_and_start)
    killing.start()
    while not done.is_set():
        assert courier.keys("q/") == keys
        assert courier.wait("q/", known=(), seconds=1) == keys
    killing.join()


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"error":{"description":"no"}}', b'{"num_pending":"x"}'])
def test_an_answer_that_is_none_is_one_named_error(courier, monkeypatch, answer):
    monkeypatch.setattr(courier._connection, "request_once", lambda *_, **__: Message(1, "a", answer))
    with pytest.raises(CourierError, match="refuses to list keys"):
        courier.keys("q/")
