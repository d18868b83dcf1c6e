"""Who may sign in, sessions, and sign-ins that failed."""

import json
import stat
import sys

import pytest

from privada.exceptions import InputError
from privada.service.console.users import (
    IDLE,
    LONGEST,
    MOST_FAILURES,
    MOST_OF_ALL,
    WINDOW,
    Attempts,
    Sessions,
    User,
    Users,
)

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
    people.put(User.create("Grace", "viewer", "another horse"))
    assert len(people.read()) == 3
    assert people.sign_in("Grace", PASSPHRASE) is None
    assert not people.sign_in("Grace", "another horse").may("approver")


def test_mistakes_are_named(tmp_path):
    with pytest.raises(InputError, match="Expected role to be one of viewer"):
        User.create("Grace", "king", PASSPHRASE)
    with pytest.raises(InputError, match="passphrase of 8"):
        User.create("Grace", "viewer", "short")
    (tmp_path / "users.json").write_text("[]")
    with pytest.raises(InputError, match="not a file of console users"):
        Users(tmp_path / "users.json").read()
    assert Users(tmp_path / "none.json").read() == {}


GRACE = User(name="Grace", role="approver", salt="", scrypt="")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_session_ends_when_it_is_idle_too_long_in_all_or_signed_out():
    clock = Clock()
    sessions = Sessions(clock)
    idle, old, out = sessions.begin(GRACE), sessions.begin(GRACE), sessions.begin(GRACE)
    sessions.end(out)
    assert sessions.find(out) is None
    assert sessions.find("") is None
    while clock.now < LONGEST:
        assert sessions.find(old).user is GRACE
        clock.now += IDLE
    assert sessions.find(idle) is None
    clock.now = LONGEST + 1
    assert sessions.find(old) is None


def test_a_token_is_bound_to_its_session_and_to_what_it_is_about():
    sessions = Sessions()
    one, other = (sessions.find(sessions.begin(GRACE)) for _ in range(2))
    token = one.token("decision", "ab")
    assert one.owns(token, "decision", "ab")
    assert not one.owns(token, "decision", "cd")
    assert not other.owns(token, "decision", "ab")
    assert not one.owns("é", "decision", "ab")


def test_sign_ins_that_fail_are_limited_by_name_and_in_all():
    clock = Clock()
    attempts = Attempts(clock)
    assert all(attempts.start("Grace") for _ in range(MOST_FAILURES))
    assert not attempts.start("Grace")
    assert attempts.start("Ada")
    attempts.succeed("Ada")
    clock.now = WINDOW
    assert attempts.start("Grace")
    assert sum(attempts.start(str(i)) for i in range(100)) == MOST_OF_ALL - 1
