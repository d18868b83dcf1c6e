"""Keys as they arrive, whatever happens to the server."""

import threading


def test_a_watch_that_missed_something_starts_again(courier):
    courier.put("q/a", b"x")
    assert courier.wait("q/", known=(), seconds=5) == ["q/a"]
    watch = courier._watches["q/"]
    watch.keys.clear()
    watch._missed = True
    assert courier.wait("q/", known=(), seconds=5) == ["q/a"]


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
