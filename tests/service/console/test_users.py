import json
import stat
import sys

import pytest

from privada.exceptions import InputError
from privada.service.console.users import User, Users

from .conftest import PASSPHRASE


def test_a_passphrase_opens_its_own_name_only(people):
    assert people.sign_in("Grace", PASSPHRASE).role == "approver"
    assert people.sign_in("Grace", "wrong horse") is None
    assert people.sign_in("nobody", "") is None
    assert people.sign_in("Mallory", PASSPHRASE) is None


def test_the_file_holds_no_passphrase_and_is_the_owners_alone(people):
    assert PASSPHRASE not in people.path.read_text()
    grace = people.read()["Grace"]
    assert grace.scrypt not in repr(grace)  # nor does a traceback that shows a session
    if sys.platform != "win32":
        assert stat.S_IMODE(people.path.stat().st_mode) == 0o600
    salts = [each["salt"] for each in json.loads(people.path.read_text())["users"]]
    assert len(set(salts)) == len(salts) == 3


def test_adding_a_name_again_replaces_it(people):
    people.put(User.made("Grace", "viewer", "another horse"))
    assert len(people.read()) == 3
    assert people.sign_in("Grace", PASSPHRASE) is None
    assert not people.sign_in("Grace", "another horse").may("approver")


def test_mistakes_are_named(tmp_path):
    with pytest.raises(InputError, match="Expected role to be one of viewer"):
        User.made("Grace", "king", PASSPHRASE)
    with pytest.raises(InputError, match="passphrase of 8"):
        User.made("Grace", "viewer", "short")
    (tmp_path / "users.json").write_text("[]")
    with pytest.raises(InputError, match="not a file of console users"):
        Users(tmp_path / "users.json").read()
    assert Users(tmp_path / "none.json").read() == {}
