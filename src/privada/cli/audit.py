"""``privada audit``: try to catch a method leaking more than it claims."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli import show
from privada.cli.exits import Exit
from privada.cli.options import AsJson

if TYPE_CHECKING:
    from privada.audit.blackbox import AuditResult
    from privada.audit.method import QuestionAudit
    from privada.privacy.release import Question
    from privada.report.tables import Table

EXAMPLE = "privada audit cells --trials 5000"


def command(
    method: Annotated[
        str | None, typer.Argument(metavar="METHOD", help="Name of the method; without it, all of them.")
    ] = None,
    trials: Annotated[
        int, typer.Option("--trials", min=100, help="Answers to each question, on each data set.")
    ] = 20_000,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", min=0.5, max=0.999999, help="Probability with which a sound question passes."
        ),
    ] = 0.99,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the generated neighbours.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Audit a method's example questions on generated neighbouring data sets.

    A black-box auditor bounds epsilon from below by outputs alone; a replay
    auditor checks that no exact value moves by more than its declared
    sensitivity; a third tests that the noise has its declared distribution.
    Ends with 6 if one finds a violation. Passing is not a proof.
    """
    from privada.audit import audit_method
    from privada.methods.registry import method as find
    from privada.methods.registry import methods

    chosen = [*methods().values()] if method is None else [find(method)]
    audits: list[QuestionAudit] = []
    for each in chosen:
        with show.progress(quiet=as_json) as track:
            bar = partial(_watched, track, f"audit {each.name}")
            audits += audit_method(each, trials=trials, confidence=confidence, seed=seed, track=bar)
    passed = all(audit.passed for audit in audits)
    plain = {"passed": passed, "audits": [audit.to_dict() for audit in audits]}
    failures = [str(audit) for audit in audits if not audit.passed]
    show.emit(plain, (_table(audits), *failures), as_json=as_json)
    if not passed:
        raise typer.Exit(Exit.FOUND)


def _watched(track: show.Track[Question], what: str, questions: list[Question]) -> Iterable[Question]:
    return track(questions, what)


def _table(audits: list[QuestionAudit]) -> Table:
    from privada.report.ledger import percent
    from privada.report.tables import Table

    rows = tuple(
        (
            f"{audit.question} {audit.digest[:8]}",
            str(audit.blackbox.claimed),
            f"{audit.blackbox.epsilon_claimed:.4g} at δ = {audit.blackbox.delta:g}",
            _bound(audit.blackbox),
            str(audit.blackbox.trials),
            f"{len(audit.replays)} pairs, {percent(audit.worst.share)} of the bound",
            f"{len(audit.laws.tests)} tests",
            "passed" if audit.passed else "FAILED",
        )
        for audit in audits
    )
    columns = ("question", "claimed", "ε claimed", "ε is at least", "trials", "replays", "noise", "verdict")
    return Table(title="Audits", columns=columns, rows=rows)


def _bound(found: AuditResult) -> str:
    """The lower bound, and what it would be if the trade-off were Gaussian."""
    assumed = found.epsilon_lower_gdp
    more = "" if assumed is None else f" ({assumed:.4g} if Gaussian)"
    return f"{found.epsilon_lower:.4g}{more}"


__all__ = ["EXAMPLE", "command"]
