"""Check what others see: owners of many-party runs, and readers of an exchange.

What one owner sees must not depend on another owner's rows.

`replay_views` runs a protocol in two worlds that differ in one party's rows. Releases of the
first world are recorded and played back in the second, as if noise had made them equal; raw
rows are disclosed live. Then every other party must have been shown the same, to the last bit: as many
messages, and in each of them every field.

`replay_rounds` does the same for the round protocol, where the curator itself speaks. What was drawn is
played back (noisy sums and asking bits); everything that is worked out from it is compared: counts, vectors,
numbers of points, who is asked, and when it ends. Exact sums may differ by no more than a broadcast's
sensitivity, ranks by no more than the steps that were paid for.

Somebody who sees all traffic of an exchange and opens none of it still sees that messages were sent, where
they lie and how long they are; and reads what travels unsealed. `audit_traffic` runs a whole protocol in two
worlds, several times each, in turn. What is the same in every run of one world, the same in every run of the
other, and different between them, is a function of the rows that noise does not cover: a counterexample.

**What is proved.** A difference is a counterexample on this pair of worlds; of traffic, up to an accident of
probability about 2^-(2 runs - 1) for a single random bit. No difference proves nothing about other worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeVar

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

W = TypeVar("W")
Message = tuple[str, bytes]  # where it lies or for whom it is, and its bytes
Run = Callable[[Sequence[OwnerNode]], Any]
Tape = dict[tuple[str, str], Release]
RUNS = 8


@dataclass(frozen=True)
class Difference:
    """One field of a message that a party was shown in one world and not in the other.

    Attributes
    ----------
    owner : str
        Who was shown the message.
    message : int
        Number of the message, from 0 on.
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
        Parties.
    compared : int
        How many parties' views were compared.
    differences : tuple of Difference
    """

    differing: tuple[str, ...]
    compared: int
    differences: tuple[Difference, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no view differed."""
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
        Whatever owners were shown that differs although noise and bits are the same.
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
    names = _name_others(world, neighbour, changed)
    tape: Tape = {}
    first = _watch_nodes(world, tape, live=True)
    run(world)
    second = _watch_nodes(neighbour, tape, live=False)
    run(neighbour)
    differences = tuple(difference for name in names for difference in first[name].differences(second[name]))
    owners = tuple(dict.fromkeys(difference.owner for difference in differences))
    return ViewAudit(owners, len(names), differences)


def _name_others(world: Sequence[OwnerNode], neighbour: Sequence[OwnerNode], changed: str) -> list[str]:
    names = [node.name for node in world]
    if names != [node.name for node in neighbour] or changed not in names:
        raise InputError("Expected the same parties in both worlds, the changed one among them.")
    return [name for name in names if name != changed]


class _Watch:
    """Records every field of every message that a node is shown, and answers from the tape."""

    def __init__(self, node: OwnerNode, tape: Tape, *, live: bool) -> None:
        self.node, self.messages = node, list[Mapping[str, Any]]()
        self.start = len(node.view.entries)
        self._answer, self._reply = node.answer, node.reply
        self._tape, self._live = tape, live
        # Stand between the node and whoever asks it
        node.answer = self.answer  # type: ignore[method-assign]
        node.reply = self.reply  # type: ignore[method-assign]

    def reply(self, ask: AskOwner) -> Any:
        question = ask.question
        plain, arrays = question.parts()
        about = {"kind": question.kind, "to": ask.to, "guarantee": question.guarantee, "salt": question.salt}
        self.messages.append({**about, **plain, **arrays, "digest": question.digest})
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
        self.messages, self.start = [], len(self.node.view.entries)

    def differences(self, other: _Watch) -> list[Difference]:
        """List all fields of all messages that are not the same to the last bit."""
        name = self.node.name
        differences = [
            Difference(name, number, field)
            for number, pair in enumerate(zip_longest(self.messages, other.messages))
            for field in compare_messages(*pair)
        ]
        notes = self.node.view.entries[self.start :], other.node.view.entries[other.start :]
        if not differences and notes[0] != notes[1]:
            differences.append(Difference(name, len(self.messages), "noted"))
        return differences


def _watch_nodes(nodes: Sequence[OwnerNode], tape: Tape, *, live: bool) -> dict[str, _Watch]:
    return {node.name: _Watch(node, tape, live=live) for node in nodes}


def compare_messages(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> list[str]:
    """List the fields in which two messages differ."""
    if left is None or right is None:
        return ["shown"]
    if left["kind"] != right["kind"]:
        return ["kind"]
    if left.keys() != right.keys():
        return sorted(left.keys() ^ right.keys())
    fields = [name for name in left if name != "digest" and not same(left[name], right[name])]
    return fields or ([] if left["digest"] == right["digest"] else ["digest"])


@dataclass
class _RoundRecord:
    """What the curator drew in one run, and from what."""

    exact: list[FloatArray] = field(default_factory=list)
    noisy: list[FloatArray] = field(default_factory=list)
    ranks: list[dict[str, int]] = field(default_factory=list)
    asked_names: list[set[str]] = field(default_factory=list)
    mechanism: Gaussian | None = None


class _Recorder(CuratorNoise):
    """Draws, and records exact sums, ranks and bits; what an earlier run drew is played back.

    Bits are played back for ``viewers`` only: the coins of all others are theirs, and no viewer may
    notice how they fell.
    """

    def __init__(
        self, noise: Noise, record: _RoundRecord, earlier: _RoundRecord | None, viewers: Sequence[str]
    ) -> None:
        super().__init__(noise)
        self.record, self.earlier, self.viewers = record, earlier, viewers

    def noisy_sum(self, wanted: NoisySum) -> FloatArray:
        turn, mechanism = len(self.record.exact), wanted.mechanism
        self.record.mechanism = mechanism
        self.record.exact.append(mechanism.grid.values(mechanism.grid.truncate(wanted.features).sum(axis=0)))
        if self.earlier is not None and turn < len(self.earlier.noisy):
            noisy = self.earlier.noisy[turn]
        else:
            noisy = super().noisy_sum(wanted)
        self.record.noisy.append(noisy)
        return noisy

    def asked_owners(self, wanted: AskedOwners) -> set[str]:
        turn, ranks = len(self.record.ranks), wanted.ranks
        self.record.ranks.append(dict(ranks))
        owners = super().asked_owners(wanted)
        if self.earlier is not None and turn < len(self.earlier.ranks):
            for name in self.viewers:
                if name not in ranks or name not in self.earlier.ranks[turn]:
                    continue
                # The bit that was drawn before, wherever the rule could draw it
                was_asked, miss = name in self.earlier.asked_names[turn], wanted.rule.miss(ranks[name])
                if was_asked and miss < 1:
                    owners = owners | {name}
                elif not was_asked and miss > 0:
                    owners = owners - {name}
        self.record.asked_names.append(owners)
        return owners


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
        Noise of broadcasts and coins.
    runs : int, default=1
        Number of runs, each with other noise. In the first run, all owners but ``changed`` are viewers, and
        see the bits that they saw before. In each further run one of them is, in turn; the coins of
        others fall anew.
    """
    names = _name_others(world, neighbour, changed)
    tape: Tape = {}
    first, second = _watch_nodes(world, tape, live=True), _watch_nodes(neighbour, tape, live=False)
    audits = []
    for number in range(_check.count(runs=runs)):
        viewers = names if number == 0 else [names[number % len(names)]]
        for watch in (*first.values(), *second.values()):
            watch.restart()
        before, after = _RoundRecord(), _RoundRecord()
        run(world, _Recorder(noise, before, None, viewers).draw)
        run(neighbour, _Recorder(noise, after, before, viewers).draw)
        audits.append(_compare_rounds(before, after, first, second, viewers))
    return RoundAudit(
        moved=max(audit.moved for audit in audits),
        allowed=audits[0].allowed,
        rank_shift=max(audit.rank_shift for audit in audits),
        rank_allowed=steps,
        rounds=audits[0].rounds,
        differences=tuple(difference for audit in audits for difference in audit.differences),
        messages=sum(audit.messages for audit in audits),
    )


def _compare_rounds(
    before: _RoundRecord,
    after: _RoundRecord,
    first: Mapping[str, _Watch],
    second: Mapping[str, _Watch],
    viewers: Sequence[str],
) -> RoundAudit:
    """Compare one run of each world; differences after a bit that was paid for are not counted."""
    assert before.mechanism is not None
    moves = [float(np.linalg.norm(a - b)) for a, b in zip(before.exact, after.exact, strict=False)]
    rank_shift, differences = 0, list[Difference]()
    for name in viewers:
        for turn, (ranks, other_ranks) in enumerate(zip(before.ranks, after.ranks, strict=False)):
            if name not in ranks or name not in other_ranks:
                continue
            rank_shift = max(rank_shift, abs(ranks[name] - other_ranks[name]))
            if (name in before.asked_names[turn]) != (name in after.asked_names[turn]):
                break  # a bit that was paid for tells the worlds apart from here on
        else:
            differences += first[name].differences(second[name])
    return RoundAudit(
        moved=max(moves),
        allowed=before.mechanism.sensitivity,
        rank_shift=rank_shift,
        rank_allowed=0,
        rounds=len(before.exact),
        differences=tuple(differences),
        messages=sum(len(first[name].messages) for name in viewers),
    )


@dataclass(frozen=True)
class TrafficAudit:
    """Which part of the traffic depends on the rows.

    Attributes
    ----------
    differences : tuple of str
        "number of messages", "lengths of messages", or what differs of which message. None
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
    """Run a protocol in both worlds, and compare the bytes that a reader of the exchange sees.

    Parameters
    ----------
    run : callable
        Runs the protocol in a world with fresh keys and noise, and returns all messages as (place, bytes), in
        the order that a reader sees. Noisy answers must have so much noise that they differ between
        runs, or be played back (as `replay_views` does): this audit is about what noise does not cover.
    world, neighbour
        Arguments of ``run`` in which the rows of one party differ.
    runs : int, default=8
        Number of runs in each world.

    Examples
    --------
    >>> import os
    >>> def disclose(rows):  # sealed, but as long as its content
    ...     yield "owner/rows.sealed", os.urandom(8 * len(set(rows)) + 28)
    >>> print(audit_traffic(disclose, [1, 2, 3], [1, 2, 2]))
    FAILED: lengths of messages; length of message 0
    """
    _check.count(least=2, runs=runs)
    first, second = list[list[Message]](), list[list[Message]]()
    for _ in range(runs):  # in turn, so that what depends on the time is the same in neither
        first.append(list(run(world)))
        second.append(list(run(neighbour)))
    differences = []
    if _tell_apart([len(side) for side in first], [len(side) for side in second]):
        differences.append("number of messages")
    lengths = [[sorted(len(blob) for _, blob in side) for side in sides] for sides in (first, second)]
    if _tell_apart(*lengths):
        differences.append("lengths of messages")
    messages = min(map(len, first + second))
    for number in range(messages):
        sides = [[side[number] for side in sides] for sides in (first, second)]
        if _tell_apart(*([place for place, _ in side] for side in sides)):
            differences.append(f"place of message {number}")
        blobs = [[blob for _, blob in side] for side in sides]
        # The bytes at each place, as far as all messages go
        columns = zip(*(zip(*side, strict=False) for side in blobs), strict=False)
        if _tell_apart(*([len(blob) for blob in side] for side in blobs)):
            differences.append(f"length of message {number}")
        elif any(_tell_apart(*places) for places in columns):
            differences.append(f"content of message {number}")
    return TrafficAudit(tuple(differences), messages)


def _tell_apart(first: Sequence[object], second: Sequence[object]) -> bool:
    """Whether something is constant in each world and not the same in both."""
    constant = all(value == first[0] for value in first) and all(value == second[0] for value in second)
    return constant and first[0] != second[0]
