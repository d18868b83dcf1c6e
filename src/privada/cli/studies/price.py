"""``privada price``: what a question or a study would cost. Nothing is charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.exits import Exit
from privada.cli.options import AsJson, existing_file
from privada.exceptions import BudgetError, InputError, PolicyError

if TYPE_CHECKING:
    from privada.parties.owner_file import Card, OwnerFile
    from privada.parties.protocol import AskOwner
    from privada.privacy.asker import Asker
    from privada.privacy.guarantee import Guarantee
    from privada.privacy.ledger.account import AllowanceQuote
    from privada.privacy.release import Question
    from privada.report.tables import Table
    from privada.studies.study import Study

EXAMPLE = "privada price study.toml"
_COLUMNS = (
    "owner",
    "question",
    "digest",
    "guarantee",
    "of the budget",
    "left now",
    "of the allowance",
    "left of it",
    "95 % noise",
    "verdict",
)
ROUNDING = 1e-6  # a question that leaves less of its study's μ than this leaves nothing


def command(
    what: Annotated[
        Path,
        typer.Argument(metavar="QUESTION|STUDY", help="A question file, or a study.", show_default=False),
    ],
    owner: Annotated[
        Path | None, typer.Option("--owner", metavar="FILE", help="An owner.toml, for a question file.")
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option("--learner", metavar="NAME", help="A learner of owner.toml: shows its allowance, too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a question file or a study would cost. Nothing is charged, no row is opened.

    Shows the guarantee, the share of the owner's budget, and how noisy each
    number of the answer would be. For a study that asks in rounds, it prices the
    first round, and shows what all rounds together take at most. Ends with 3 if
    the owner would refuse one of them.
    """
    existing_file(what, "QUESTION|STUDY")
    study = _study(what, owner) if what.suffix == ".toml" else None
    quotes = list(_of_file(what, owner, learner) if study is None else _of_study(study, learner))
    whole = {} if study is None else in_all(study)
    rounds = [] if study is None else together(study, learner)
    plain = {
        "prices": [quote.to_dict() for quote in quotes],
        "in_all": {name: guarantee.to_dict() for name, guarantee in whole.items()},
        "together": {each.owner: each.to_dict() for each in rounds},
    }
    said = [each.sentence for each in rounds]
    show.emit(plain, (_table(quotes), *_later(whole), *said), as_json=as_json)
    if any([*(quote.refusal for quote in quotes), *(each.refusal for each in rounds)]):
        raise typer.Exit(Exit.REFUSED)


@dataclass(frozen=True, kw_only=True)
class Priced:
    """One question and its owner's verdict; share and left are None where the ledger is not available."""

    owner: str
    question: Question
    share: float | None = None
    left: float | None = None
    allowance: AllowanceQuote | None = None
    refusal: str = ""

    @property
    def verdict(self) -> str:
        """What would happen."""
        if self.share is None and not self.refusal:
            return "only its owner can say"
        return self.refusal or "would be answered"

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "owner": self.owner,
            "question": self.question.digest,
            "kind": self.question.kind,
            "guarantee": self.question.guarantee.to_dict(),
            "share": self.share,
            "left": self.left,
            "allowance": None if self.allowance is None else self.allowance.to_dict(),
            "verdict": self.verdict,
            "half_widths": half_widths(self.question),
        }


@dataclass(frozen=True, kw_only=True)
class Together:
    """What all rounds of a study take from one owner's budget; share and left are None if unknown."""

    owner: str
    share: float | None = None
    left: float | None = None
    allowance: AllowanceQuote | None = None
    refusal: str = ""
    unknown: str = ""

    @property
    def verdict(self) -> str:
        """What would happen to the study."""
        return self.refusal or self.unknown or "all rounds would be answered"

    @property
    def sentence(self) -> str:
        """The verdict, with the share where there is one."""
        from privada.report.ledger import percent

        if self.share is None or self.refusal:
            return f"{self.owner}: {self.verdict}"
        part = "" if self.allowance is None else f", and {self.allowance}"
        return (
            f"{self.owner}: all rounds would be answered and take {percent(self.share)} of the budget{part}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        part = None if self.allowance is None else self.allowance.to_dict()
        return {"share": self.share, "left": self.left, "allowance": part, "verdict": self.verdict}


def half_widths(question: Question) -> dict[str, float]:
    """Half-width at 95 % of each number of an answer, where the noise has one."""
    found = {}
    for name, mechanism in question.plan.draws.items():
        try:
            found[name] = float(mechanism.half_width(0.95))
        except InputError:
            continue
    return found


def _of_file(path: Path, owner: Path | None, learner: str | None) -> Iterator[Priced]:
    from privada.exchange.files import load_question
    from privada.parties.owner_file import OwnerFile

    question = load_question(path)
    if owner is None:
        if learner is not None:
            raise InputError("--learner needs the owner.toml that lists it: --owner FILE.")
        yield Priced(owner="", question=question)
    else:
        file = OwnerFile.read(existing_file(owner, "--owner"))
        yield priced(file.dataset, question, file, learner)


def _study(path: Path, owner: Path | None) -> Study:
    from privada.studies.study import Study

    if owner is not None:
        raise InputError("--owner goes with a question file; a study names its owners itself.")
    return Study.read(path)


def _of_study(study: Study, learner: str | None) -> Iterator[Priced]:
    for ask in study.first_asks:
        yield priced(ask.owner, ask.question, study.parties[ask.owner], learner)


def in_all(study: Study) -> dict[str, Guarantee]:
    """What a study asks for in all its rounds, at most, of each owner that its first one does not use up."""
    later = {name for name, asks in _later_asks(study).items() if _charged(asks)}
    return {name: study.guarantee for name in study.parties if name in later}


def together(study: Study, learner: str | None = None) -> list[Together]:
    """What all rounds take from each owner that is asked for more than the first."""
    from privada.parties.owner_file import OwnerFile

    found = []
    for name, asks in _later_asks(study).items():
        party = study.parties[name]
        if isinstance(party, OwnerFile):
            found.append(_of_owner(name, asks, party, learner))
        else:
            found.append(_of_card(name, asks, study))
    return found


def _later_asks(study: Study) -> dict[str, list[AskOwner]]:
    """All asks of each owner that is asked for more after the first round."""
    asks: dict[str, list[AskOwner]] = {}
    for ask in study.inquiry.asks:
        asks.setdefault(ask.owner, []).append(ask)
    first = Counter(ask.owner for ask in study.first_asks)
    return {name: mine for name, mine in asks.items() if len(mine) > first[name]}


def _charged(asks: list[AskOwner]) -> list[Question]:
    return [ask.question for ask in asks if not ask.question.discloses]


def _asker(name: str, file: OwnerFile, learner: str | None) -> Asker | None:
    """The learner as an owner lists it; one that it does not list is refused by name."""
    from privada.cli.owners.decisions import find_learner

    try:
        return None if learner is None else find_learner(file, learner)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _of_owner(name: str, asks: list[AskOwner], party: OwnerFile, learner: str | None) -> Together:
    from privada.parties.running import quote_all

    try:
        quote = quote_all(asks, party, asker=_asker(name, party, learner))
    except (BudgetError, PolicyError) as error:
        return Together(owner=name, refusal=str(error))
    refusal = "" if quote.affordable else str(quote.refusal())
    return Together(
        owner=name,
        share=quote.share,
        left=quote.remaining_share,
        allowance=quote.allowance,
        refusal=refusal,
    )


def _of_card(name: str, asks: list[AskOwner], study: Study) -> Together:
    """An owner card has neither budget nor accounting: assume a budget of the study's guarantee."""
    from privada.privacy.accounting.filters import accountings

    prices = [question.price for question in _charged(asks)]
    enough = " or ".join(f'accounting = "{each}"' for each in accountings(study.guarantee, prices))
    pays = f"pays with {enough}" if enough else "does not pay for all"
    unknown = (
        "whether all rounds can be paid, only its owner can say: the card names neither what is left of the "
        f"budget nor its accounting. A new budget of the study's guarantee {pays}."
    )
    return Together(owner=name, unknown=unknown)


def _later(whole: Mapping[str, Guarantee]) -> Iterator[str]:
    """Sentences on rounds that cannot be priced yet, because their questions depend on answers."""
    for name, guarantee in whole.items():
        yield f"{name}: later rounds follow from answers; all together ask for at most {guarantee}."


def priced(name: str, question: Question, party: OwnerFile | Card, learner: str | None = None) -> Priced:
    """A party's verdict on a question; a learner who only has its owner card cannot know the share."""
    from privada.parties.owner_file import OwnerFile

    if not isinstance(party, OwnerFile):
        return Priced(owner=name, question=question)
    try:
        quote = party.price(question, asker=_asker(name, party, learner))
    except (BudgetError, PolicyError) as error:
        return Priced(owner=name, question=question, refusal=str(error))
    refusal = "" if quote.affordable else str(quote.refusal())
    try:
        party.policy.admit(question, share=quote.share)
    except PolicyError as error:
        refusal = refusal or str(error)
    return Priced(
        owner=name,
        question=question,
        share=quote.share,
        left=quote.remaining_share,
        allowance=quote.allowance,
        refusal=refusal,
    )


def _table(quotes: list[Priced]) -> Table:
    from privada.report.ledger import percent
    from privada.report.tables import Table

    rows = tuple(
        (
            quote.owner,
            quote.question.kind,
            quote.question.digest[:12],
            str(quote.question.guarantee),
            "" if quote.share is None else percent(quote.share),
            "" if quote.left is None else percent(quote.left),
            "" if quote.allowance is None else percent(quote.allowance.share),
            "" if quote.allowance is None else percent(quote.allowance.remaining_share),
            ", ".join(f"{name} ±{half:.4g}" for name, half in half_widths(quote.question).items()),
            quote.verdict,
        )
        for quote in quotes
    )
    table = Table(title="Price (nothing was charged)", columns=_COLUMNS, rows=rows)
    return table.without_empty_columns()


__all__ = ["EXAMPLE", "Priced", "Together", "command", "half_widths", "in_all", "priced", "together"]
