"""Items of a JetStream stream: created once, kept over a restart."""

import threading

from privada.exchange.couriers.nats import stream_of, subject_of


def test_subjects_of_different_keys_differ():
    keys = ["a/b", "a.b", "a/b.1", "a/b/1", "a-b"]
    assert len({subject_of("trial", key) for key in keys}) == len(keys)


def test_making_an_exchange_twice_changes_nothing(courier):
    courier.put("a/b", b"x")
    courier.create_exchange()
    assert courier.get("a/b") == b"x"


def test_the_server_itself_refuses_to_overwrite_and_to_delete(courier):
    """Whoever may publish, with another program too, cannot change what is there."""
    courier.put("a/b", b"first")
    subject, stream = subject_of("trial", "a/b"), stream_of("trial")
    send = courier._connection.request
    for headers in ({}, {"Nats-Rollup": "sub"}, {"KV-Operation": "PURGE", "Nats-Rollup": "all"}):
        assert b"error" in send(subject, b"second", headers=headers).data
    assert b"error" in send(f"$JS.API.STREAM.MSG.DELETE.{stream}", b'{"seq":1}').data
    assert b"error" in send(f"$JS.API.STREAM.PURGE.{stream}").data
    assert courier.get("a/b") == b"first"


def test_everything_is_there_after_the_server_was_killed(courier, own_nats_server, connect):
    courier.put("q/a", b"before")
    assert courier.wait("q/", known=(), seconds=5) == ["q/a"]
    own_nats_server.kill()
    starting = threading.Timer(0.5, own_nats_server.start)
    starting.start()
    assert courier.get("q/a") == b"before"
    assert courier.put("q/a", b"again") is False
    starting.join()
    with connect(own_nats_server) as other:
        other.put("q/b", b"after")
    assert courier.wait("q/", known={"q/a"}, seconds=10) == ["q/b"]
