"""Commands before anything is asked: ``advise``, ``price`` and ``forecast``. They charge no budget."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import AsJson, StudyFile, existing_file, find_learner
from privada.exceptions import BudgetError, InputError, PolicyError, PrivadaWarning
from privada.methods.situation import SIDES, WANTS, YOURS

if TYPE_CHECKING:
    from privada.parties.owner_file import Card, OwnerFile
    from privada.parties.protocol import AskOwner
    from privada.privacy.asker import Asker
    from privada.privacy.guarantee import Guarantee
    from privada.privacy.ledger.account import AllowanceQuote
    from privada.privacy.release import Question
    from privada.report.tables import Table
    from privada.studies.study import Study


def advise(
    want: Annotated[
        str, typer.Option(metavar="|".join(WANTS), help="What you want.", show_default=False)
    ] = "",
    private: Annotated[
        str,
        typer.Option(metavar="|".join(SIDES), help="For a model: what cannot be shared.", show_default=False),
    ] = "",
    yours: Annotated[
        str, typer.Option(metavar="|".join(YOURS), help="For a model: what you hold.", show_default=False)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Say which method fits what you hold and want, and why. At a terminal it asks what you leave out."""
    from privada.methods.method import methods

    want = _complete_choice("want", want, WANTS)
    if want == "model":
        private = _complete_choice("private", private, SIDES)
        yours = _complete_choice("yours", yours, YOURS) if private == "target" else ""
    plain, lines = [], []
    for name, method in methods().items():
        situation = method.situation
        if situation is None or not situation.fits(want=want, private=private, yours=yours):
            continue
        plain.append({"name": name, "because": situation.because})
        start = f"An example to change: privada init DIR --method {name}"
        if not method.has_part("template"):
            start = f"Its page: docs/methods/{name}.md"
        lines += [f"{name}: {situation.because}", f"  {start}"]
    if not plain:
        raise InputError("No installed method fits; privada advise --help lists what can be said.")
    show.emit({"methods": plain}, lines, as_json=as_json)


def _complete_choice(name: str, answer: str, options: Mapping[str, str]) -> str:
    """Check the value of an option; at a terminal, ask for one that is missing."""
    from privada import _check

    if answer:
        return _check.one_of(tuple(options), **{name: answer})
    if not sys.stdin.isatty():
        raise InputError(f"--{name}: say one of {', '.join(options)}.")
    for number, (key, text) in enumerate(options.items(), start=1):
        typer.echo(f"{number}. {key}: {text}", err=True)
    choice = int(typer.prompt(f"--{name}", type=int, err=True))
    if not 1 <= choice <= len(options):
        raise InputError(f"Expected a number from 1 to {len(options)}, got {choice}.")
    return tuple(options)[choice - 1]


def forecast(study: StudyFile, as_json: AsJson = False) -> None:
    """Say what a study may expect at a quarter to four times its budget. Nothing is asked or spent.

    The expected error is a share of the error of doing nothing; below 100 %, something is gained. For counts
    and evaluations it is the error itself. It is computed from public facts only: the size, the noise, and
    your own rows.
    """
    from privada.report.tables import Table
    from privada.studies.forecast import forecast_study
    from privada.studies.study import Study

    def format_percent(share: float) -> str:  # two digits of a small share, whole percents of others
        return f"{share:.0%}" if share >= 0.1 else f"{share * 100:.2g}%"

    with warnings.catch_warnings():
        # A warning that little is expected would only repeat what the table says
        warnings.simplefilter("ignore", PrivadaWarning)
        definition = Study.read(existing_file(study, "STUDY"))
        outlooks = forecast_study(definition)
    rows, plain = [], []
    for outlook in outlooks:
        prediction = outlook.forecast
        record: dict[str, Any] = {
            "guarantee": str(outlook.guarantee),
            "forecast": None,
            "beside": None,
            "measure": None,
            "half_widths": outlook.half_widths,
        }
        if prediction is None:
            # Without a forecast, show how noisy the first numbers would be
            widths = [f"{name} ±{width:.3g}" for name, width in outlook.half_widths.items()]
            rows.append((str(outlook.guarantee), "", "", ", ".join(widths[:3])))
        else:
            low, middle, high = map(format_percent, (prediction.low, prediction.ratio, prediction.high))
            rows.append((str(outlook.guarantee), middle, f"{low} to {high}", ""))
            record |= {
                "forecast": {"ratio": prediction.ratio, "low": prediction.low, "high": prediction.high},
                "beside": prediction.beside or None,
                "measure": prediction.measure or None,
            }
        plain.append(record)
    predictions = [outlook.forecast for outlook in outlooks if outlook.forecast is not None]
    lines = [
        predictions[0].explanation
        if predictions
        else "What this study asks has no forecast of its error; the noise of each number is known exactly."
    ]
    if predictions and not any(prediction.worthwhile for prediction in predictions):
        lines.append("No gain is expected at any of these budgets: keep the budget.")
    columns = ("guarantee", "expected error", "in four cases of five", "each number within (95 %)")
    table = Table(title=definition.title, columns=columns, rows=tuple(rows))
    show.emit(
        {"title": definition.title, "outlooks": plain},
        [table.without_empty_columns(), *lines],
        as_json=as_json,
    )


def price(
    what: Annotated[
        Path,
        typer.Argument(metavar="QUESTION|STUDY", help="A question file, or a study.", show_default=False),
    ],
    owner: Annotated[
        Path | None, typer.Option("--owner", metavar="FILE", help="An owner.toml, for a question file.")
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option("--learner", metavar="NAME", help="A learner of owner.toml: also show its allowance."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a question file or a study would cost. Nothing is charged, no row is opened.

    Shows the guarantee, the share of the owner's budget, and how noisy each
    number of the answer would be. For a study that asks in rounds, it prices the
    first round, and shows what all rounds together take at most. Ends with 3 if
    the owner would refuse one of them.
    """
    from privada.exchange.posting import load_question
    from privada.parties.owner_file import OwnerFile
    from privada.studies.study import Study

    existing_file(what, "QUESTION|STUDY")
    totals: dict[str, Guarantee] = {}
    rounds: list[StudyPrice] = []
    if what.suffix == ".toml":
        if owner is not None:
            raise InputError("--owner goes with a question file; a study names its owners itself.")
        study = Study.read(what)
        quotes = [
            price_question(ask.owner, ask.question, study.parties[ask.owner], learner)
            for ask in study.first_asks
        ]
        totals, rounds = price_later_rounds(study), price_all_rounds(study, learner)
    else:
        question = load_question(what)
        if owner is not None:
            file = OwnerFile.read(existing_file(owner, "--owner"))
            quotes = [price_question(file.dataset, question, file, learner)]
        elif learner is not None:
            raise InputError("--learner needs the owner.toml that lists it: --owner FILE.")
        else:
            quotes = [QuestionPrice(owner="", question=question)]
    plain = {
        "prices": [quote.to_dict() for quote in quotes],
        "in_all": {name: guarantee.to_dict() for name, guarantee in totals.items()},
        "together": {quote.owner: quote.to_dict() for quote in rounds},
    }
    # Later rounds follow from answers, so their questions cannot be priced one by one
    later = [
        f"{name}: later rounds follow from answers; all together ask for at most {guarantee}."
        for name, guarantee in totals.items()
    ]
    view: list[Table | str] = [_tabulate_prices(quotes), *later, *(quote.sentence for quote in rounds)]
    show.emit(plain, view, as_json=as_json)
    if any(quote.refusal for quote in quotes) or any(quote.refusal for quote in rounds):
        raise typer.Exit(show.Exit.REFUSED)


@dataclass(frozen=True, kw_only=True)
class QuestionPrice:
    """One question and its owner's verdict; `share` and `remaining` are None without its ledger."""

    owner: str
    question: Question
    share: float | None = None
    remaining: float | None = None
    allowance: AllowanceQuote | None = None
    refusal: str = ""
    paid: bool = False

    @property
    def verdict(self) -> str:
        """What the owner would do."""
        if self.share is None and not self.refusal:
            return "only its owner can say"
        if self.paid and not self.refusal:
            return "was answered before; the same release is free"
        return self.refusal or "would be answered"

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "owner": self.owner,
            "question": self.question.digest,
            "kind": self.question.kind,
            "guarantee": self.question.guarantee.to_dict(),
            "share": self.share,
            "left": self.remaining,
            "allowance": None if self.allowance is None else self.allowance.to_dict(),
            "verdict": self.verdict,
            "half_widths": half_widths(self.question),
        }


@dataclass(frozen=True, kw_only=True)
class StudyPrice:
    """What all rounds of a study take from one owner's budget; share and remaining are None if unknown."""

    owner: str
    share: float | None = None
    remaining: float | None = None
    allowance: AllowanceQuote | None = None
    refusal: str = ""
    unknown: str = ""

    @property
    def verdict(self) -> str:
        """What the owner would do with the study."""
        return self.refusal or self.unknown or "all rounds would be answered"

    @property
    def sentence(self) -> str:
        """The verdict, with the share where it is known."""
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
        return {"share": self.share, "left": self.remaining, "allowance": part, "verdict": self.verdict}


def half_widths(question: Question) -> dict[str, float]:
    """Compute the half-width at 95 % of each number of an answer, where the noise has one."""
    widths = {}
    for name, mechanism in question.plan.draws.items():
        try:
            widths[name] = float(mechanism.half_width(0.95))
        except InputError:
            continue
    return widths


def price_question(
    name: str, question: Question, party: OwnerFile | Card, learner: str | None = None
) -> QuestionPrice:
    """Price one question; a learner who only has the owner's card cannot know the share."""
    from privada.parties.owner_file import OwnerFile

    if not isinstance(party, OwnerFile):
        return QuestionPrice(owner=name, question=question)
    try:
        quote = party.price(question, asker=_find_asker(name, party, learner))
    except (BudgetError, PolicyError) as error:
        return QuestionPrice(owner=name, question=question, refusal=str(error))
    refusal = "" if quote.affordable else str(quote.refusal())
    paid = party.has_paid(question)
    if not paid:  # its share is 0 otherwise, which the policy takes for a question that is too cheap
        try:
            party.policy.admit(question, share=quote.share)
        except PolicyError as error:
            refusal = refusal or str(error)
    return QuestionPrice(
        owner=name,
        question=question,
        share=quote.share,
        remaining=quote.remaining_share,
        allowance=quote.allowance,
        refusal=refusal,
        paid=paid,
    )


def price_later_rounds(study: Study) -> dict[str, Guarantee]:
    """Return the guarantee of all rounds, at most, for each owner that is charged after the first round."""
    return {
        name: study.guarantee
        for name, asks in _asks_of_rounds(study).items()
        if any(not ask.question.discloses for ask in asks)
    }


def price_all_rounds(study: Study, learner: str | None = None) -> list[StudyPrice]:
    """Price all rounds together, for each owner that is asked for more than the first."""
    from privada.parties.owner_file import OwnerFile
    from privada.parties.running import quote_all
    from privada.privacy.accounting.filters import accountings

    prices = []
    for name, asks in _asks_of_rounds(study).items():
        party = study.parties[name]
        if isinstance(party, OwnerFile):
            try:
                quote = quote_all(asks, party, asker=_find_asker(name, party, learner))
            except (BudgetError, PolicyError) as error:
                prices.append(StudyPrice(owner=name, refusal=str(error)))
                continue
            prices.append(
                StudyPrice(
                    owner=name,
                    share=quote.share,
                    remaining=quote.remaining_share,
                    allowance=quote.allowance,
                    refusal="" if quote.affordable else str(quote.refusal()),
                )
            )
            continue
        # An owner card has neither budget nor accounting: assume a budget of the study's guarantee
        charges = [ask.question.price for ask in asks if not ask.question.discloses]
        rules = accountings(study.guarantee, charges)
        enough = " or ".join(f'accounting = "{rule}"' for rule in rules)
        pays = f"pays with {enough}" if enough else "does not pay for all"
        unknown = (
            "whether all rounds can be paid, only its owner can say: the card names neither what is left of "
            f"the budget nor its accounting. A new budget of the study's guarantee {pays}."
        )
        prices.append(StudyPrice(owner=name, unknown=unknown))
    return prices


def _asks_of_rounds(study: Study) -> dict[str, list[AskOwner]]:
    """Collect all questions to each owner that is asked for more after the first round."""
    asks: dict[str, list[AskOwner]] = {}
    for ask in study.inquiry.asks:
        asks.setdefault(ask.owner, []).append(ask)
    first = Counter(ask.owner for ask in study.first_asks)
    return {name: of_owner for name, of_owner in asks.items() if len(of_owner) > first[name]}


def _find_asker(name: str, file: OwnerFile, learner: str | None) -> Asker | None:
    """Find the learner in an owner's file; the error about one that is not listed names the owner."""
    try:
        return None if learner is None else find_learner(file, learner)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _list_noise(widths: dict[str, float]) -> str:
    """List half-widths; numbered names in a row that have the same one are a range.

    >>> _list_noise({"counts": 3.0, "sums_0": 2.0, "sums_1": 2.0, "sums_2": 2.5})
    'counts ±3, sums_0 to sums_1 ±2, sums_2 ±2.5'
    """
    parts = []
    for (_, width), group in groupby(
        ((name, f"±{half:.4g}") for name, half in widths.items()),
        key=lambda pair: (pair[0].rstrip("0123456789"), pair[1]),
    ):
        names = [name for name, _ in group]
        parts.append(f"{names[0]} {width}" if len(names) == 1 else f"{names[0]} to {names[-1]} {width}")
    return ", ".join(parts)


def _tabulate_prices(quotes: list[QuestionPrice]) -> Table:
    from privada.report.ledger import percent
    from privada.report.tables import Table

    def share(number: float | None) -> str:
        return "" if number is None else percent(number)

    columns = (
        *("owner", "question", "digest", "guarantee", "of the budget", "left now"),
        *("of the allowance", "left of it", "95 % noise", "verdict"),
    )
    rows = tuple(
        (
            quote.owner,
            quote.question.kind,
            quote.question.digest[:12],
            str(quote.question.guarantee),
            share(quote.share),
            share(quote.remaining),
            share(None if quote.allowance is None else quote.allowance.share),
            share(None if quote.allowance is None else quote.allowance.remaining_share),
            _list_noise(half_widths(quote.question)),
            quote.verdict,
        )
        for quote in quotes
    )
    table = Table(title="Price (nothing was charged)", columns=columns, rows=rows)
    return table.without_empty_columns()
