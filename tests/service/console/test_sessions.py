from privada.service.console.sessions import (
    IDLE,
    LONGEST,
    MOST_FAILURES,
    MOST_OF_ALL,
    WINDOW,
    Attempts,
    Sessions,
)
from privada.service.console.users import User

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
