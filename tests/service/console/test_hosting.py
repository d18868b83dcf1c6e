import urllib.error
import urllib.request

import pytest

from privada.exceptions import InputError
from privada.service.console import host
from privada.service.console.users import Users


def test_the_console_listens_on_this_machine_and_stops_with_the_service(served, people):
    with host(served.service, people, 0) as address:
        with urllib.request.urlopen(f"{address}/sign-in", timeout=5) as reply:
            assert b"Passphrase" in reply.read()
            assert reply.headers["Content-Security-Policy"]
            assert reply.headers["Server"] is None
        with (
            pytest.raises(InputError, match="cannot be used"),
            host(served.service, people, int(address.rpartition(":")[2])),
        ):
            pass
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{address}/sign-in", timeout=5)


def test_no_port_serves_nothing_and_no_people_is_an_error(served, people, tmp_path):
    with host(served.service, people, None) as address:
        assert address is None
    with (
        pytest.raises(InputError, match="Nobody may sign in"),
        host(served.service, Users(tmp_path / "none.json"), 0),
    ):
        pass


def test_people_of_an_identity_provider_are_enough(served, tmp_path):
    settings = tmp_path / "console.toml"
    settings.write_text(
        '[oidc]\nissuer = "https://login.example.org"\nclient_id = "console"\n'
        '[[oidc.people]]\nemail = "grace@example.org"\nrole = "viewer"\n'
    )
    nobody = Users(tmp_path / "none.json")
    with (
        host(served.service, nobody, 0, oidc=settings) as address,
        urllib.request.urlopen(f"{address}/sign-in", timeout=5) as reply,
    ):
        page = reply.read().decode()
    assert "Sign in with login.example.org" in page
    assert 'type="password"' not in page
    settings.write_text("[oidc]\n")
    with pytest.raises(InputError, match="issuer"), host(served.service, nobody, 0, oidc=settings):
        pass
