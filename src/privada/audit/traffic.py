"""What somebody reads who sees all traffic of an exchange and opens none of it.

Sealed messages look random, but that they were sent, where they lie and how long they are does not; and
what travels unsealed is read as it is. `audit_traffic` runs a whole protocol in two worlds, several times
each, in turn. What is the same in every run of one world, the same in every run of the other, and different
between them, is a function of the rows that noise does not cover: a counterexample.

**What is proved.** A difference is a counterexample on this pair of worlds, up to an accident of
probability about 2^-(2 runs - 1) for a single random bit. No difference proves nothing about other worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from privada import _check

W = TypeVar("W")
Message = tuple[str, bytes]  # where it lies or for whom it is, and its bytes
RUNS = 8


@dataclass(frozen=True)
class TrafficAudit:
    """What of the traffic depends on the rows.

    Attributes
    ----------
    differences : tuple of str
        "number of messages", "lengths of messages", or place and number of the message that differs. None
        of them shows its content.
    messages : int
        How many messages were compared in each run.
    """

    differences: tuple[str, ...]
    messages: int

    @property
    def passed(self) -> bool:
        """Whether no difference was found."""
        return not self.differences

    def __str__(self) -> str:
        if self.passed:
            return f"passed: {self.messages} messages tell the worlds not apart"
        return f"FAILED: {'; '.join(self.differences)}"


def audit_traffic(
    run: Callable[[W], Iterable[Message]], world: W, neighbour: W, *, runs: int = RUNS
) -> TrafficAudit:
    """Run a protocol in both worlds and compare the bytes that a reader of the exchange sees.

    Parameters
    ----------
    run : callable
        Runs the protocol in a world with fresh keys and noise, and returns all messages as (place, bytes), in
        an order that a reader sees. Noisy answers have to have so much noise that they differ between
        runs, or to be played back (as `replay_views` does): this audit is about what noise does not cover.
    world, neighbour
        What ``run`` takes; the rows of one party differ.
    runs : int, default=8
        Runs in each world.

    Examples
    --------
    >>> import os
    >>> def disclose(rows):  # sealed, and as long as what is in it
    ...     yield "owner/rows.sealed", os.urandom(8 * len(set(rows)) + 28)
    >>> print(audit_traffic(disclose, [1, 2, 3], [1, 2, 2]))
    FAILED: lengths of messages; length of message 0
    """
    _check.count(least=2, runs=runs)
    first, second = list[list[Message]](), list[list[Message]]()
    for _ in range(runs):  # in turn, so that what depends on the time is the same in neither
        first.append(list(run(world)))
        second.append(list(run(neighbour)))
    return TrafficAudit(tuple(_differences(first, second)), min(map(len, first + second)))


def _differences(first: list[list[Message]], second: list[list[Message]]) -> Iterator[str]:
    if _told_apart([len(side) for side in first], [len(side) for side in second]):
        yield "number of messages"
    lengths = [[sorted(len(blob) for _, blob in side) for side in sides] for sides in (first, second)]
    if _told_apart(*lengths):
        yield "lengths of messages"
    for number in range(min(map(len, first + second))):
        sides = [[side[number] for side in sides] for sides in (first, second)]
        if _told_apart(*([place for place, _ in side] for side in sides)):
            yield f"place of message {number}"
        blobs = [[blob for _, blob in side] for side in sides]
        if _told_apart(*([len(blob) for blob in side] for side in blobs)):
            yield f"length of message {number}"
        elif any(_told_apart(*columns) for columns in zip(*(_columns(side) for side in blobs), strict=False)):
            yield f"content of message {number}"


def _columns(blobs: Sequence[bytes]) -> list[tuple[int, ...]]:
    """The bytes at each place, as far as all messages go."""
    return list(zip(*blobs, strict=False))


def _told_apart(first: Sequence[object], second: Sequence[object]) -> bool:
    """Whether something is constant in each world and not the same in both."""
    constant = all(each == first[0] for each in first) and all(each == second[0] for each in second)
    return constant and first[0] != second[0]


__all__ = ["Message", "TrafficAudit", "audit_traffic"]
