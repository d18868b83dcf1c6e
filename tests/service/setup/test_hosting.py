"""The page is served on this machine only, until the owner is made."""

import urllib.request

import pytest

pytest.importorskip("uvicorn")
from privada.service.setup.hosting import serve_set_up


def test_the_page_is_there_and_goes(new_owner, monkeypatch, said):
    monkeypatch.setattr("privada.service.setup.page.LAST_LOOK", 0.0)
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
