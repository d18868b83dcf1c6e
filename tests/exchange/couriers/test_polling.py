"""Looking again, less and less often."""

from privada.exchange.couriers import polling
from privada.exchange.couriers.local import LocalCourier


class Slow(polling.PollingCourier, LocalCourier):
    shortest_pause, longest_pause = 1.0, 4.0

    def __init__(self):
        polling.PollingCourier.__init__(self)
        LocalCourier.__init__(self)


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now, self.pauses = 0.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


def test_pauses_grow_over_waits_and_are_short_again_after_news(monkeypatch):
    clock, courier = Clock(), Slow()
    monkeypatch.setattr(polling, "time", clock)
    assert courier.wait("a/", known=(), seconds=6) == []
    assert clock.pauses == [1, 1.5, 2.25, 1.25]
    assert courier.wait("a/", known=(), seconds=6) == []
    assert clock.pauses[4:] == [4, 2]
    courier.put("a/b", b"")
    assert courier.wait("a/", known=(), seconds=6) == ["a/b"]
    assert courier.wait("a/", known={"a/b"}, seconds=1) == []
    assert clock.pauses[6:] == [1]
