"""Check the transcripts of many-party runs: what one owner sees must not depend on another owner's rows.

`replay_views` runs a protocol in two worlds that differ in one party's rows. Releases of the
first world are recorded and played back in the second, as if noise had made them equal; raw
rows are disclosed live. Then every other party must have been shown the same, to the last bit: as many
messages, and in each of them every field.

`replay_rounds` does the same for the round protocol, where the curator itself speaks. What was drawn is
played back (noisy sums and asking bits); everything that is worked out from it is compared: counts, vectors,
numbers of points, who is asked, and when it ends. Exact sums may differ by no more than a broadcast's
sensitivity, ranks by no more than the steps that were paid for.

**What is proved.** A difference is a counterexample on this pair of worlds; no difference proves
nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.audit.transcript import same
from privada.exceptions import InputError
from privada.methods.summarization.curator import CuratorNoise, OwnerNode
from privada.methods.summarization.learner.rounds import AskedOwners, Draw, NoisySum
from privada.parties.protocol import AskOwner
from privada.privacy.mechanism import Gaussian
from privada.privacy.noise import Noise
from privada.privacy.release import Question, Release

Run = Callable[[Sequence[OwnerNode]], Any]
Tape = dict[tuple[str, str], Release]


@dataclass(frozen=True)
class Difference:
    """One field of one message that a party was shown in one world and not in the other.

    Attributes
    ----------
    owner : str
        Who was shown it.
    message : int
        Which message, from 0 on.
    field : str
        A field of the question, "kind" or "to"; "shown" if the message came in one world only;
        "noted" if only the party's own transcript differs.
    """

    owner: str
    message: int
    field: str


@dataclass(frozen=True)
class ViewAudit:
    """Whose view differed between the worlds.

    Attributes
    ----------
    differing : tuple of str
    compared : int
        How many parties' views were compared.
    differences : tuple of Difference
        In what they differed.
    """

    differing: tuple[str, ...]
    compared: int
    differences: tuple[Difference, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no view did."""
        return not self.differing


@dataclass(frozen=True)
class RoundAudit:
    """How far the curator's exact sums and the owners' ranks moved between the worlds, at most.

    Attributes
    ----------
    moved, allowed : float
        L2 distance of the exact sums of a round between the worlds, and a broadcast's sensitivity.
    rank_shift, rank_allowed : int
    rounds : int
        Broadcasts of each run.
    differences : tuple of Difference
        All that owners were shown and that is not the same once noise and bits are.
    messages : int
        How many messages were compared.
    """

    moved: float
    allowed: float
    rank_shift: int
    rank_allowed: int
    rounds: int
    differences: tuple[Difference, ...] = ()
    messages: int = 0

    @property
    def passed(self) -> bool:
        """Whether sums and ranks stayed within what was paid for, and nothing else differed."""
        within = self.moved <= self.allowed * (1 + 1e-9) and self.rank_shift <= self.rank_allowed
        return within and not self.differences


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
    names = _others(world, neighbour, changed)
    tape: Tape = {}
    first = _watched(world, tape, live=True)
    run(world)
    second = _watched(neighbour, tape, live=False)
    run(neighbour)
    found = tuple(each for name in names for each in first[name].differences(second[name]))
    return ViewAudit(tuple(dict.fromkeys(each.owner for each in found)), len(names), found)


def _others(world: Sequence[OwnerNode], neighbour: Sequence[OwnerNode], changed: str) -> list[str]:
    names = [node.name for node in world]
    if names != [node.name for node in neighbour] or changed not in names:
        raise InputError("Expected the same parties in both worlds, the changed one among them.")
    return [name for name in names if name != changed]


class _Watch:
    """Writes down every field of every message that a node is shown, and answers from the tape."""

    def __init__(self, node: OwnerNode, tape: Tape, *, live: bool) -> None:
        self.node, self.shown = node, list[Mapping[str, Any]]()
        self.start = len(node.view.entries)
        self._answer, self._reply = node.answer, node.reply
        self._tape, self._live = tape, live
        node.answer = self.answer  # type: ignore[method-assign]
        node.reply = self.reply  # type: ignore[method-assign]

    def reply(self, ask: AskOwner) -> Any:
        self.shown.append(_fields(ask))
        return self._reply(ask)

    def answer(self, question: Question) -> Release:
        key = self.node.name, question.digest
        if key not in self._tape:
            if not self._live:
                raise InputError("This question was not asked in the other world.")
            self._tape[key] = self._answer(question)
        return self._tape[key]

    def restart(self) -> None:
        """Forget what was shown: another run begins."""
        self.shown, self.start = [], len(self.node.view.entries)

    def differences(self, other: _Watch) -> list[Difference]:
        """All fields of all messages that are not the same to the last bit."""
        name = self.node.name
        found = [
            Difference(name, number, field)
            for number, pair in enumerate(zip_longest(self.shown, other.shown))
            for field in _unlike(*pair)
        ]
        noted = self.node.view.entries[self.start :], other.node.view.entries[other.start :]
        if not found and noted[0] != noted[1]:
            found.append(Difference(name, len(self.shown), "noted"))
        return found


def _watched(nodes: Sequence[OwnerNode], tape: Tape, *, live: bool) -> dict[str, _Watch]:
    return {node.name: _Watch(node, tape, live=live) for node in nodes}


def _fields(ask: AskOwner) -> dict[str, Any]:
    """All that a message says: what its digest is made of, and for whom the reply is."""
    question = ask.question
    plain, arrays = question.parts()
    about = {"kind": question.kind, "to": ask.to, "guarantee": question.guarantee, "salt": question.salt}
    return {**about, **plain, **arrays, "digest": question.digest}


def _unlike(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> list[str]:
    if left is None or right is None:
        return ["shown"]
    if left["kind"] != right["kind"]:
        return ["kind"]
    if left.keys() != right.keys():
        return sorted(left.keys() ^ right.keys())
    found = [name for name in left if name != "digest" and not same(left[name], right[name])]
    return found or ([] if left["digest"] == right["digest"] else ["digest"])


@dataclass
class _RoundRecord:
    """What the curator drew in one run, and what it drew it from."""

    exact: list[FloatArray] = field(default_factory=list)
    noisy: list[FloatArray] = field(default_factory=list)
    ranks: list[dict[str, int]] = field(default_factory=list)
    asked: list[set[str]] = field(default_factory=list)
    mechanism: Gaussian | None = None


class _Recorder(CuratorNoise):
    """Draws, and remembers exact sums, ranks and bits; what was drawn before is drawn again.

    Bits are played back for ``viewers`` only: the coins of all others are theirs, and no viewer may
    notice how they fell.
    """

    def __init__(
        self, noise: Noise, said: _RoundRecord, played: _RoundRecord | None, viewers: Sequence[str]
    ) -> None:
        super().__init__(noise)
        self.said, self.played, self.viewers = said, played, viewers

    def noisy_sum(self, wanted: NoisySum) -> FloatArray:
        turn, mechanism = len(self.said.exact), wanted.mechanism
        self.said.mechanism = mechanism
        self.said.exact.append(mechanism.grid.values(mechanism.grid.truncate(wanted.features).sum(axis=0)))
        again = self.played is not None and turn < len(self.played.noisy)
        noisy = self.played.noisy[turn] if again and self.played else super().noisy_sum(wanted)
        self.said.noisy.append(noisy)
        return noisy

    def asked_owners(self, wanted: AskedOwners) -> set[str]:
        turn, found, rule = len(self.said.ranks), wanted.ranks, wanted.rule
        self.said.ranks.append(dict(found))
        asked = super().asked_owners(wanted)
        if self.played is not None and turn < len(self.played.ranks):
            for name in self.viewers:
                asked = self._again(asked, name, turn, found, rule)
        self.said.asked.append(asked)
        return asked

    def _again(self, asked: set[str], name: str, turn: int, found: Mapping[str, int], rule: Any) -> set[str]:
        """The bit that was drawn before, wherever the rule could draw it."""
        assert self.played is not None
        if name not in found or name not in self.played.ranks[turn]:
            return asked
        bit, miss = name in self.played.asked[turn], rule.miss(found[name])
        possible = miss < 1 if bit else miss > 0
        return (asked | {name} if bit else asked - {name}) if possible else asked


def replay_rounds(
    run: Callable[[Sequence[OwnerNode], Callable[[Draw], Any]], Any],
    world: Sequence[OwnerNode],
    neighbour: Sequence[OwnerNode],
    *,
    changed: str,
    steps: int,
    noise: Noise,
    runs: int = 1,
) -> RoundAudit:
    """Run the round protocol in both worlds with the same broadcasts, coins and releases.

    Parameters
    ----------
    run : function of nodes and a function that draws (``draw`` of `Curator.auction`)
    world, neighbour, changed
        As for `replay_views`.
    steps : int
        Ranks that one unit of the relation may move (`RoundPlan.steps`).
    noise : Noise
        Of broadcasts and coins.
    runs : int, default=1
        How often, each time with other noise. In the first run all owners but ``changed`` are taken together,
        and see the bits that they saw before. In each further run one of them is, in turn; the coins of
        others fall anew.
    """
    names = _others(world, neighbour, changed)
    tape: Tape = {}
    sides = (world, _watched(world, tape, live=True)), (neighbour, _watched(neighbour, tape, live=False))
    found = []
    for number in range(_check.count(runs=runs)):
        viewers = names if number == 0 else [names[number % len(names)]]
        found.append(_replay_once(run, sides, viewers, noise))
    return RoundAudit(
        moved=max(each.moved for each in found),
        allowed=found[0].allowed,
        rank_shift=max(each.rank_shift for each in found),
        rank_allowed=steps,
        rounds=found[0].rounds,
        differences=tuple(difference for each in found for difference in each.differences),
        messages=sum(each.messages for each in found),
    )


def _replay_once(
    run: Callable[[Sequence[OwnerNode], Callable[[Draw], Any]], Any],
    sides: Sequence[tuple[Sequence[OwnerNode], Mapping[str, _Watch]]],
    viewers: Sequence[str],
    noise: Noise,
) -> RoundAudit:
    """One run in each world, of which the second hears what was drawn in the first."""
    said: list[_RoundRecord] = []
    for nodes, watches in sides:
        for watch in watches.values():
            watch.restart()
        said.append(_RoundRecord())
        run(nodes, _Recorder(noise, said[-1], said[0] if len(said) > 1 else None, viewers).draw)
    first, second = said
    assert first.mechanism is not None
    here, there = (watches for _, watches in sides)
    moves = [float(np.linalg.norm(a - b)) for a, b in zip(first.exact, second.exact, strict=False)]
    shifts = [shift for name in viewers for shift in _shifts(name, first, second)]
    return RoundAudit(
        moved=max(moves),
        allowed=first.mechanism.sensitivity,
        rank_shift=max(shifts, default=0),
        rank_allowed=0,
        rounds=len(first.exact),
        differences=tuple(each for name in viewers for each in _unpaid_differences(name, here, there, said)),
        messages=sum(len(here[name].shown) for name in viewers),
    )


def _unpaid_differences(
    name: str, here: Mapping[str, _Watch], there: Mapping[str, _Watch], said: Sequence[_RoundRecord]
) -> list[Difference]:
    """What an owner was shown in one world only, unless a bit that was paid for distinguishes the worlds."""
    if _first_split(name, *said) is not None:
        return []
    return here[name].differences(there[name])


def _first_split(name: str, first: _RoundRecord, second: _RoundRecord) -> int | None:
    """The first round in which an owner with a bid in both worlds was asked in one of them only."""
    for turn, (left, right) in enumerate(zip(first.ranks, second.ranks, strict=False)):
        both = name in left and name in right
        if both and (name in first.asked[turn]) != (name in second.asked[turn]):
            return turn
    return None


def _shifts(name: str, first: _RoundRecord, second: _RoundRecord) -> Iterator[int]:
    """How far an owner's rank moved, for as long as it was asked alike."""
    last = _first_split(name, first, second)
    for turn, (left, right) in enumerate(zip(first.ranks, second.ranks, strict=False)):
        if name in left and name in right:
            yield abs(left[name] - right[name])
        if turn == last:
            return


__all__ = ["Difference", "RoundAudit", "ViewAudit", "replay_rounds", "replay_views"]
