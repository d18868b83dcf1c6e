"""The outcome of a study: the result, every release behind it, and the new ledger lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from privada.exceptions import InputError
from privada.exchange.asking import Step
from privada.exchange.mailbox import Mailbox
from privada.parties.owner import Owner
from privada.parties.owner_file import OwnerFile
from privada.parties.running import check_ahead, run
from privada.privacy.release import Release
from privada.studies.naming import name_result, names_of
from privada.studies.study import Study

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a study.

    Attributes
    ----------
    study : Study
    result : mapping
        Plain form of what the method's learner returned, with names (`privada.studies.naming`).
    releases : tuple of Release
        All releases that the learner received.
    ledgers : mapping of owner's name to export
        The owners' ledgers, with the lines of this study only; empty for ledgers that are not available.
    learnt : object
        What the method's learner returned.
    """

    study: Study
    result: Mapping[str, Any]
    releases: tuple[Release, ...]
    ledgers: Mapping[str, Mapping[str, Any]]
    learnt: Any = field(repr=False)

    @property
    def stamps(self) -> tuple[str, ...]:
        """All warnings that readers must know beside the guarantees."""
        return tuple(sorted({stamp for release in self.releases for stamp in release.stamps}))

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "written_by": "privada",
            "study": self.study.title,
            "method": self.study.method.name,
            "seed": self.study.seed,
            "again": self.study.again,
            "budget": str(self.study.guarantee),
            "guarantee": self.study.guarantee.to_dict(),
            "names": names_of(self.study.schema) | {"owners": list(self.study.parties)},
            "stamps": list(self.stamps),
            "result": dict(self.result),
            "releases": [_plain(release) for release in self.releases],
            "ledgers": {name: dict(export) for name, export in self.ledgers.items()},
        }


def _plain(release: Release) -> dict[str, Any]:
    return {
        "kind": release.kind,
        "dataset": release.receipt.dataset,
        "promise": str(release.guarantee),
        "guarantee": release.guarantee.to_dict(),
        "noise": _noise(release),
        "stamps": list(release.stamps),
        "question": release.question,
        "line": release.receipt.index,
        "signed_by": release.receipt.public,
    }


def _noise(release: Release) -> dict[str, Any]:
    """How far each released number may be from the exact one, where its noise says so."""
    widths = release.half_widths(CONFIDENCE)
    return {
        name: {"family": note["family"], "within": widths.get(name), "confidence": CONFIDENCE}
        for name, note in release.noise.items()
    }


def run_study(study: Study) -> Outcome:
    """Run a study in one process, together with every owner.

    A study that cannot be paid to the end is refused before any budget is opened and its accounting fixed.
    """
    files = {name: _file(study, name) for name in study.parties}
    check_ahead(study.inquiry.asks, files)
    owners = {name: Owner.from_file(file) for name, file in files.items()}
    before = {name: _height(owner) for name, owner in owners.items()}
    releases: list[Release] = []
    result = run(study.inquiry, owners, witness=releases.append)
    return Outcome(
        study=study,
        result=name_result(result, study.schema),
        releases=tuple(releases),
        ledgers={name: _written(owner, before[name]) for name, owner in owners.items()},
        learnt=result,
    )


def learn_from(
    mailbox: Mailbox,
    study: Study,
    *,
    patience: float = 0.0,
    watch: Callable[[Step], None] | None = None,
) -> Outcome:
    """Run a study over an exchange, from the releases that are there and those that come in time.

    Before the first release has arrived, owners whose files and keys are available are checked for whether
    they could pay to the end. Raises `Waiting` if a release did not come; run it again to go on.
    """
    if study.at_hand and not any(map(mailbox.has_reply, study.first_asks)):
        check_ahead(study.inquiry.asks, study.at_hand)
    releases: list[Release] = []
    result = mailbox.learn(study.inquiry, patience=patience, witness=releases.append, watch=watch)
    return Outcome(
        study=study,
        result=name_result(result, study.schema),
        releases=tuple(releases),
        ledgers={},
        learnt=result,
    )


def _file(study: Study, name: str) -> OwnerFile:
    party = study.parties[name]
    if not isinstance(party, OwnerFile):
        raise InputError(
            f'To run a study here, owners.{name} needs owner = "owner.toml"; it has only a schema. '
            "Ask through an exchange instead: privada run --exchange."
        )
    return party


def _height(owner: Owner) -> int:
    return sum(1 for _ in owner.ledger.lines(owner.dataset))


def _written(owner: Owner, before: int) -> dict[str, Any]:
    """The export of an owner's data set, with the lines from ``before`` on."""
    export = owner.ledger.export(owner.dataset)
    account = export["datasets"][owner.dataset]
    account["lines"] = [line for line in account["lines"] if line["index"] >= before]
    return export


__all__ = ["Outcome", "learn_from", "run_study"]
