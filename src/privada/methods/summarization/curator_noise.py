"""Noise of a trusted curator: all that it tells owners in rounds passes through here."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.learner.draws import AskedOwners, Draw, NoisySum
from privada.methods.summarization.learner.rounds import Rounds
from privada.parties.protocol import Learner
from privada.privacy.noise import Noise, SecureNoise

T = TypeVar("T")
WORD = 2**64
COIN = WORD**2  # outcomes of a coin


class CuratorNoise:
    """Draws noisy sums, and which owners are asked.

    Parameters
    ----------
    noise : Noise, optional
        By default the operating system's; seeded noise is for tests only.
    """

    def __init__(self, noise: Noise | None = None) -> None:
        self.noise = SecureNoise() if noise is None else noise

    def draw(self, wanted: Draw) -> Any:
        """What a learner asked to be drawn."""
        return self.noisy_sum(wanted) if isinstance(wanted, NoisySum) else self.asked_owners(wanted)

    def noisy_sum(self, wanted: NoisySum) -> FloatArray:
        """The points' sum in whole grid steps, each truncated by itself, and noise."""
        exact = wanted.mechanism.grid.truncate(wanted.features).sum(axis=0)
        return np.asarray(wanted.mechanism.draw(exact, self.noise))

    def asked_owners(self, wanted: AskedOwners) -> set[str]:
        """Flip one coin for each owner; rank 1 is always asked.

        A coin has 128 bits, the last 64 drawn where they matter. With 53, every chance to be missed below
        1e-16 would be none, and ranks on either side of that could be told apart at no price.
        """
        coins = self.noise.words(len(wanted.ranks))
        return {
            name
            for (name, rank), coin in zip(wanted.ranks.items(), coins, strict=True)
            if self._reaches(int(coin), int(Fraction(wanted.rule.miss(rank)) * COIN))
        }

    def _reaches(self, coin: int, threshold: int) -> bool:
        high, low = divmod(threshold, WORD)
        return coin > high or (coin == high and int(self.noise.words(1)[0]) >= low)


def repeat_draws(draw: Callable[[Draw], Any]) -> Callable[[], Callable[[Draw], Any]]:
    """Make curators that draw alike: each hears again what an earlier one was told, and only then draws anew.

    An inquiry can be started twice, and owners answer the same question alike both times. The same sum with
    fresh noise would show more than was paid for.
    """
    drawn: list[tuple[Draw, Any]] = []

    def start() -> Callable[[Draw], Any]:
        place = iter(range(2**31))

        def draw_once(wanted: Draw) -> Any:
            number = next(place)
            if number == len(drawn):
                drawn.append((wanted, draw(wanted)))
            before, answer = drawn[number]
            if not before.equals(wanted):
                raise InputError(
                    "The rounds were started again with other answers, and would show more than was paid "
                    "for: ask anew, with another again= in the study."
                )
            return answer

        return draw_once

    return start


def supply_noise(rounds: Rounds[T], draw: Callable[[Draw], Any]) -> Learner[T]:
    """A learner of the common protocol: questions pass, draws are answered by ``draw``."""
    try:
        wanted = next(rounds)
        while True:
            answered = draw(wanted) if isinstance(wanted, Draw) else (yield wanted)
            wanted = rounds.send(answered)
    except StopIteration as stop:
        return stop.value


__all__ = ["CuratorNoise", "repeat_draws", "supply_noise"]
