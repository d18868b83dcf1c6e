from privada.service.console.oidc.pending import LONGEST, MOST, PendingSignIns


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_sign_in_is_taken_once_by_its_browser():
    pending = PendingSignIns()
    state, cookie, begun = pending.begin("http://here/back", {"a": 1})
    assert pending.take("another", cookie) is None
    assert pending.take(state, cookie) is begun
    assert pending.take(state, cookie) is None
    state, _, _ = pending.begin("http://here/back", {})
    assert pending.take(state, cookie) is None


def test_it_ends_with_its_time_and_the_oldest_makes_room():
    clock = Clock()
    pending = PendingSignIns(clock)
    late, first = pending.begin("", {}), pending.begin("", {})
    clock.now = LONGEST + 1
    assert pending.take(*late[:2]) is None
    others = [pending.begin("", {}) for _ in range(MOST)]
    clock.now = 0.0
    assert pending.take(*first[:2]) is None
    assert pending.take(*others[-1][:2]) is others[-1][2]


def test_secrets_are_new_each_time_and_not_shown():
    pending = PendingSignIns()
    one, other = (pending.begin("", {})[2] for _ in range(2))
    assert {one.nonce, one.verifier}.isdisjoint({other.nonce, other.verifier})
    assert one.nonce not in repr(one)
    assert one.verifier not in repr(one)
    assert 43 <= len(one.verifier) <= 128  # RFC 7636
