"""Ways to a server: what a link.toml or a URL may say."""

from urllib.parse import urlsplit

import pytest

from privada.exceptions import InputError, StudyError
from privada.exchange.link import Link

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
    link = Link.from_url(urlsplit("tls://a:1,b:2/trial?ca=x/ca.pem&certificate=x/me.pem&key=x/me.key"))
    assert link.servers == ("tls://a:1", "tls://b:2")
    assert (link.exchange, link.key.name) == ("trial", "me.key")
    assert Link.from_url(urlsplit("nats://localhost")).exchange == "exchange"


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
        Link.from_url(urlsplit(url))


def test_files_that_are_missing_or_no_certificates_are_named(tmp_path):
    link = Link.read(written(tmp_path, 'servers = ["tls://127.0.0.1:1"]\n' + FILES))
    with pytest.raises(InputError, match=r"Cannot read ca.pem"):
        link.open()
    for name in ("ca.pem", "me.pem", "me.key"):
        (tmp_path / name).write_text("nothing")
    with pytest.raises(InputError, match=r"files of me.pem cannot be used"):
        link.open()
