"""Check the transcripts of many-party runs: what one owner saw may not depend on another owner's rows.

`replay_views` runs a protocol in two worlds that differ in one party's rows. Releases of the
first world are recorded and played back in the second, as if noise had made them equal; raw
rows are disclosed live. Then every other party must have been shown the same, to the last bit.

`replay_rounds` does the same for the round protocol, where the curator itself speaks. What it broadcast is
played back; its exact sums may differ by no more than a broadcast's sensitivity, ranks by
no more than the steps that were paid for, and coins are shared.

**What is proved.** A difference is a counterexample on this pair of worlds; no difference proves
nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.summarization.nodes import OwnerNode
from privada.methods.summarization.rounds import Voice
from privada.privacy.mechanism import Gaussian
from privada.privacy.noise import Noise
from privada.privacy.release import Question, Release

FloatArray = npt.NDArray[np.float64]
Run = Callable[[Sequence[OwnerNode]], Any]


@dataclass(frozen=True)
class ViewAudit:
    """Whose view differed between the worlds."""

    differing: tuple[str, ...]
    compared: int

    @property
    def passed(self) -> bool:
        """Whether no view did."""
        return not self.differing


@dataclass(frozen=True)
class RoundAudit:
    """How far the curator's exact sums and the owners' ranks moved between the worlds, at most."""

    moved: float
    allowed: float
    rank_shift: int
    rank_allowed: int
    rounds: int

    @property
    def passed(self) -> bool:
        """Whether both stayed within what was paid for."""
        return self.moved <= self.allowed * (1 + 1e-9) and self.rank_shift <= self.rank_allowed


def replay_views(
    run: Run, world: Sequence[OwnerNode], neighbour: Sequence[OwnerNode], *, changed: str
) -> ViewAudit:
    """Run in both worlds with the same releases; compare what everybody but ``changed`` saw.

    Parameters
    ----------
    run : function of nodes
        Runs the protocol.
    world, neighbour : sequences of OwnerNode
        The same parties in both; the rows of ``changed`` differ.
    changed : str
    """
    names = [node.name for node in world]
    if names != [node.name for node in neighbour] or changed not in names:
        raise InputError("Expected the same parties in both worlds, the changed one among them.")
    tape: dict[tuple[str, str], Release] = {}
    for node in world:
        _record(node, tape)
    run(world)
    for node in neighbour:
        _play(node, tape)
    run(neighbour)
    pairs = [pair for pair in zip(world, neighbour, strict=True) if pair[0].name != changed]
    differing = tuple(a.name for a, b in pairs if a.view.entries != b.view.entries)
    return ViewAudit(differing, len(pairs))


def _record(node: OwnerNode, tape: dict[tuple[str, str], Release]) -> None:
    answer = node.answer

    def recorded(question: Question) -> Release:
        release = answer(question)
        tape[node.name, question.digest] = release
        return release

    node.answer = recorded  # type: ignore[method-assign]


def _play(node: OwnerNode, tape: Mapping[tuple[str, str], Release]) -> None:
    def played(question: Question) -> Release:
        if (node.name, question.digest) not in tape:
            raise InputError("This question was not asked in the other world.")
        return tape[node.name, question.digest]

    node.answer = played  # type: ignore[method-assign]


@dataclass
class _Said:
    exact: list[FloatArray] = field(default_factory=list)
    noisy: list[FloatArray] = field(default_factory=list)
    ranks: list[dict[str, int]] = field(default_factory=list)
    coins: list[dict[str, float]] = field(default_factory=list)
    asked: list[set[str]] = field(default_factory=list)
    mechanism: Gaussian | None = None


class _Recorder(Voice):
    """Speaks, and remembers exact sums, ranks and coins."""

    def __init__(self, noise: Noise, said: _Said, played: _Said | None = None) -> None:
        super().__init__(noise)
        self.said, self.played = said, played

    def say(self, features: FloatArray, mechanism: Gaussian) -> FloatArray:
        turn = len(self.said.exact)
        self.said.mechanism = mechanism
        self.said.exact.append(mechanism.grid.values(mechanism.grid.truncate(features).sum(axis=0)))
        noisy = super().say(features, mechanism) if self.played is None else self.played.noisy[turn]
        self.said.noisy.append(noisy)
        return noisy

    def ask(self, found: Mapping[str, int], rule: Any) -> set[str]:
        turn = len(self.said.ranks)
        self.said.ranks.append(dict(found))
        names = sorted(found)
        coins = dict(zip(names, self.noise.uniform(len(names)).tolist(), strict=True))
        if self.played is not None:
            coins |= {name: coin for name, coin in self.played.coins[turn].items() if name in coins}
        self.said.coins.append(coins)
        self.said.asked.append({name for name in names if coins[name] <= rule.probability(found[name])})
        return self.said.asked[-1]


def replay_rounds(
    run: Callable[[Sequence[OwnerNode], Voice], Any],
    world: Sequence[OwnerNode],
    neighbour: Sequence[OwnerNode],
    *,
    changed: str,
    steps: int,
    noise: Noise,
) -> RoundAudit:
    """Run the round protocol in both worlds with the same broadcasts, coins and releases.

    Parameters
    ----------
    run : function of nodes and a Voice
    world, neighbour, changed
        As for `replay_views`.
    steps : int
        Ranks that one unit of the relation may move (`RoundPlan.steps`).
    noise : Noise
        Of broadcasts and coins.
    """
    tape: dict[tuple[str, str], Release] = {}
    for node in world:
        _record(node, tape)
    first, second = _Said(), _Said()
    run(world, _Recorder(noise, first))
    for node in neighbour:
        _play(node, tape)
    run(neighbour, _Recorder(noise, second, first))
    assert first.mechanism is not None
    moves = [float(np.linalg.norm(a - b)) for a, b in zip(first.exact, second.exact, strict=True)]
    names = [node.name for node in world if node.name != changed]
    shifts = [shift for name in names for shift in _shifts(name, first, second)]
    return RoundAudit(
        moved=max(moves),
        allowed=first.mechanism.sensitivity,
        rank_shift=max(shifts, default=0),
        rank_allowed=steps,
        rounds=len(moves),
    )


def _shifts(name: str, first: _Said, second: _Said) -> Iterator[int]:
    """How far an owner's rank moved, for as long as it was asked alike."""
    for turn, (left, right) in enumerate(zip(first.ranks, second.ranks, strict=True)):
        if name in left and name in right:
            yield abs(left[name] - right[name])
        if (name in first.asked[turn]) != (name in second.asked[turn]):
            return


__all__ = ["RoundAudit", "ViewAudit", "replay_rounds", "replay_views"]
