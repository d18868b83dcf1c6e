"""The guided page: it needs its secret and its origin, says what is wrong, and writes once."""

import urllib.request

import pytest

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from privada.parties.owner_file import OwnerFile
from privada.service.new_owner import ColumnHeader, NewOwner, serve_set_up
from privada.service.set_up_page import SetUp, make_application

OWN = "http://127.0.0.1:8400"


@pytest.fixture
def page(new_owner):
    return SetUp(owner=new_owner, origins=(OWN,))


@pytest.fixture
def client(page):
    return TestClient(make_application(page), base_url=OWN, headers={"origin": OWN})


def test_answers_make_the_owner(page, client, said, new_owner):
    reply = client.post(page.path, data=said)
    assert reply.status_code == 200
    assert "open-budget" in reply.text
    file = OwnerFile.read(new_owner.folder / "owner.toml")
    assert file.schema.label.name == "ill"


def test_what_is_wrong_is_said_and_the_answers_stay(page, client, said, new_owner):
    reply = client.post(page.path, data=said | {"high-0": "-5"})
    assert reply.status_code == 400
    assert "age" in reply.text
    assert 'value="-5"' in reply.text
    assert not new_owner.folder.exists()


def test_kinds_are_suggested_by_declared_types(page, client):
    text = client.get(page.path).text
    assert '<option value="integer" selected>' in text
    assert '<option value="category" selected>' in text


def test_a_second_form_writes_nothing(page, client, said, new_owner):
    client.post(page.path, data=said)
    before = (new_owner.folder / "owner.toml").read_text()
    assert client.post(page.path, data=said | {"epsilon": "9"}).status_code == 200
    assert (new_owner.folder / "owner.toml").read_text() == before


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/set-up/guess", {}, 404),
        (None, {"origin": "https://evil.example"}, 403),
        (None, {"host": "evil.example"}, 421),
    ],
)
def test_others_are_refused(page, client, said, new_owner, path, headers, status):
    assert client.post(path or page.path, data=said, headers=headers).status_code == status
    assert not new_owner.folder.exists()


def test_names_of_columns_are_shown_as_text(tmp_path):
    odd = "<script>alert(1)</script>"
    owner = NewOwner(folder=tmp_path, data=None, columns=(ColumnHeader(odd),), methods=())
    page = SetUp(owner=owner, origins=(OWN,))
    text = TestClient(make_application(page), base_url=OWN).get(page.path).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text


def test_replies_forbid_foreign_content(page, client):
    for path in (page.path, "/static/console.css", "/static/none"):
        assert "default-src 'none'" in client.get(path).headers["content-security-policy"]
    assert "secret" not in repr(page)


def test_the_page_is_there_and_goes(new_owner, monkeypatch, said):
    monkeypatch.setattr("privada.service.set_up_page.LAST_LOOK", 0.0)
    with serve_set_up(new_owner) as (address, page):
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as reply:
            assert b"Set up rows" in reply.read()
        page.make(said)
        page.end_if_written()
        page.wait()
    assert new_owner.folder.joinpath("owner.toml").is_file()
    with pytest.raises(OSError):
        urllib.request.urlopen(address, timeout=1)
