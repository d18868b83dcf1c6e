"""Items of a JetStream stream, keys as they arrive whatever happens to the server, and ways to a server."""

import json
import threading

import pytest

from privada.exceptions import CourierError, InputError, StudyError
from privada.exchange.nats import Link, stream_of, subject_of
from privada.exchange.nats_client import Message


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


FILES = 'ca = "ca.pem"\ncertificate = "me.pem"\nkey = "me.key"\n'


def written(tmp_path, text):
    path = tmp_path / "link.toml"
    path.write_text(text)
    return path


def test_files_are_beside_the_link(tmp_path):
    link = Link.read(written(tmp_path, 'servers = ["tls://a:1", "tls://b"]\nexchange = "trial"\n' + FILES))
    assert link.servers == ("tls://a:1", "tls://b")
    assert link.exchange == "trial"
    assert (link.ca, link.certificate, link.key) == tuple(
        tmp_path / name for name in ("ca.pem", "me.pem", "me.key")
    )


def test_a_url_says_the_same():
    link = Link.from_url("tls://a:1,b:2/trial?ca=x/ca.pem&certificate=x/me.pem&key=x/me.key")
    assert link.servers == ("tls://a:1", "tls://b:2")
    assert (link.exchange, link.key.name) == ("trial", "me.key")
    assert Link.from_url("nats://localhost").exchange == "exchange"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "servers: expected a list"),
        ("servers = []", "at least one"),
        ('servers = ["http://a"]', "such as tls://"),
        ('servers = ["tls://a/b"]\n' + FILES, "such as tls://"),
        ('servers = ["tls://a:99999"]\n' + FILES, "such as tls://"),
        ('servers = ["tls://user:secret@a"]\n' + FILES, "would be logged"),
        ('servers = ["nats://broker.example.org"]', "not encrypted"),
        ('servers = ["nats://127.0.0.1"]\n' + FILES, "Certificates are for tls"),
        ('servers = ["nats://127.0.0.1", "tls://a"]\n' + FILES, "Certificates are for tls"),
        ('servers = ["tls://a"]', "missing: ca, certificate, key"),
        ('servers = ["tls://a"]\nca = "x"\nkey = "y"', "missing: certificate"),
        ('servers = ["nats://127.0.0.1"]\nexchange = "a.b"', "exchange to be letters"),
        ('servers = ["nats://127.0.0.1"]\nexchange = ">"', "exchange to be letters"),
        ('servers = ["nats://127.0.0.1"]\nkeys = "x"', "nobody knows this key"),
    ],
)
def test_links_that_say_something_else_are_refused(tmp_path, text, said):
    with pytest.raises(StudyError, match=said) as caught:
        Link.read(written(tmp_path, text))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["tls://a", "tls://a?password=x", "nats://a", "nats://localhost/a/b"])
def test_urls_that_say_something_else_are_refused(url):
    with pytest.raises(InputError):
        Link.from_url(url)


def test_files_that_are_missing_or_no_certificates_are_named(tmp_path):
    link = Link.read(written(tmp_path, 'servers = ["tls://127.0.0.1:1"]\n' + FILES))
    with pytest.raises(InputError, match=r"Cannot read ca.pem"):
        link.open()
    for name in ("ca.pem", "me.pem", "me.key"):
        (tmp_path / name).write_text("nothing")
    with pytest.raises(InputError, match=r"files of me.pem cannot be used"):
        link.open()
