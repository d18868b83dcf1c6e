"""The questions of ``privada owner init`` at a terminal; each answer is checked before the next question."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from privada.exceptions import InputError
from privada.parties.schema import Schema
from privada.privacy.guarantee import make_guarantee
from privada.privacy.relation import Relation
from privada.service.setup.answers import (
    KINDS,
    LEFT_OUT,
    RELATIONS,
    WARNINGS,
    Answers,
    ColumnAnswer,
    is_right,
    read_number,
    read_whole,
)
from privada.service.setup.headers import ColumnHeader
from privada.service.setup.making import NewOwner


def ask_for_answers(owner: NewOwner, label: str | None) -> Answers:
    """Ask for protection, budget and every column; what is wrong is said and asked again."""
    typer.echo("Answers are public: take none from the rows. Ctrl-C ends without writing anything.")
    relation = _choose("What is protected?", RELATIONS, "add/remove")
    epsilon = _ask("Budget, epsilon: all that may ever be spent", lambda text: _budget(text, "", relation))
    delta = _ask("Budget, delta (empty: none)", lambda text: _budget(epsilon, text, relation), default="")
    person = _name("Column that names the person (empty: each row is a person)", owner.names)
    max_rows = _whole("Rows of a person that count at most", "max_rows") if person else ""
    size = _size(relation)
    said = _name("Column to predict (empty: none)", owner.names) if label is None else label
    columns = tuple(_column(header) for header in owner.columns if header.name != person)
    answers = Answers(
        columns=columns,
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        label=said,
        size=size,
        person_id=person,
        max_rows=max_rows,
    )
    answers.check()
    return answers


def _column(header: ColumnHeader) -> ColumnAnswer:
    typer.echo(f"\nColumn {header.name!r}" + (f", declared as {header.kind}" if header.kind else ""))
    kind = _choose("What is it?", KINDS, header.kind or "number")
    while True:
        answer = _describe(header.name, kind)
        wrong = is_right(answer.check)
        if wrong is None:
            return answer
        typer.echo(f"  {wrong}")


def _describe(name: str, kind: str) -> ColumnAnswer:
    if kind == LEFT_OUT:
        return ColumnAnswer(name=name, kind=kind)
    low = high = values = ""
    if kind in ("number", "integer", "date"):
        typer.echo(f"  ! {WARNINGS['bounds']}")
        low, high = typer.prompt("  Lowest"), typer.prompt("  Highest")
    if kind in ("category", "ordered"):
        typer.echo(f"  ! {WARNINGS['values']}")
        values = typer.prompt(
            "  All values, separated by semicolons" + (", in order" if kind == "ordered" else "")
        )
    missing = typer.confirm("  May values be missing?", default=False)
    return ColumnAnswer(name=name, kind=kind, low=low, high=high, values=values, missing=missing)


def _size(relation: str) -> str:
    if relation != "replace-one":
        return ""
    return _whole("Number of rows", "size")


def _whole(question: str, key: str) -> str:
    typer.echo(f"  ! {WARNINGS[key]}")
    return _ask(question, lambda text: _positive(key, text))


def _positive(what: str, text: str) -> None:
    if read_whole(what, text) < 1:
        raise InputError(f"Expected {what} to be at least 1.")


def _budget(epsilon: str, delta: str, relation: str) -> None:
    """Refuse a budget that none of the checks of owner.toml would take."""
    make_guarantee(
        epsilon=read_number("epsilon", epsilon),
        delta=read_number("delta", delta) if delta.strip() else None,
        rho=None,
        relation=Relation.parse(relation),
        unit=Schema.of_numbers(bounds=(0.0, 1.0), width=1, size=1).unit,
    )


def _name(question: str, names: list[str]) -> str:
    def check(text: str) -> None:
        if text and text not in names:
            raise InputError(f"Expected one of {', '.join(names)}, got {text!r}.")

    return _ask(question, check, default="")


def _choose(question: str, choices: Mapping[str, str], default: str) -> str:
    typer.echo(question)
    for name, meaning in choices.items():
        typer.echo(f"  {name:<12} {meaning}")

    def check(text: str) -> None:
        if text not in choices:
            raise InputError(f"Expected one of {', '.join(choices)}, got {text!r}.")

    return _ask("Your choice", check, default=default)


def _ask(question: str, check: Callable[[str], object], *, default: str | None = None) -> str:
    while True:
        text = str(typer.prompt(question, default=default, show_default=bool(default))).strip()
        wrong = is_right(lambda said=text: check(said))
        if wrong is None:
            return text
        typer.echo(f"  {wrong}")


__all__ = ["ask_for_answers"]
