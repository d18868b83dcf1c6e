"""``privada owner init``: write an owner's files, after asking about its columns if somebody can answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli import show
from privada.cli.options import (
    AsJson,
    CsvDateFormat,
    CsvDecimal,
    CsvDelimiter,
    CsvEncoding,
    CsvQuote,
    CsvThousands,
    ProtectKey,
    csv_dialect,
)
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.service.answers import Answers, ColumnAnswer
    from privada.service.new_owner import ColumnHeader, NewOwner


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The owner's folder.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="The rows: CSV, Parquet, or a folder of either."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the data set; by default the file's name."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="The column to predict.")
    ] = None,
    delimiter: CsvDelimiter = None,
    decimal: CsvDecimal = None,
    thousands: CsvThousands = None,
    encoding: CsvEncoding = None,
    quote: CsvQuote = None,
    date_format: CsvDateFormat = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="Instead of --data: postgresql://reader@host/clinic."),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="The table of the database.")
    ] = None,
    ask: Annotated[
        bool | None,
        typer.Option(
            "--ask/--no-ask", help="Ask for bounds, values and budget; by default only at a terminal."
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Ask on a page in your browser instead, served by this machine.")
    ] = False,
    passphrase: ProtectKey = False,
    as_json: AsJson = False,
) -> None:
    """Write owner.toml with every key explained, a new signing key and an empty ledger.

    At a terminal, or with --page in your browser, you are asked for bounds,
    values and budget; otherwise the file has places that you fill in before the
    owner can be loaded. Only the names of the columns are read, and their declared
    types if there are any; never a value.
    The options that say how a CSV file is written are stored in owner.toml under
    data.csv.
    """
    from privada.methods.method import methods
    from privada.parties.sources.databases import Database
    from privada.privacy.keys import VARIABLE, choose_passphrase
    from privada.service.new_owner import (
        FILL_IN,
        ColumnHeader,
        NewOwner,
        read_header,
        read_table_header,
        serve_set_up,
    )

    dialect = csv_dialect(
        delimiter=delimiter,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        quote=quote,
        date_format=date_format,
    )
    if (database is None) != (table is None) or (database and data):
        raise InputError("Expected either --data, or --database and --table.")
    source = data if database is None or table is None else Database(url=database, table=table)
    if source is None:
        headers = [ColumnHeader("x")]
    else:
        headers = read_header(source, dialect) if isinstance(source, Path) else read_table_header(source)
    owner = NewOwner(
        folder=folder,
        data=source,
        columns=tuple(headers),
        methods=tuple(methods()),
        name=name,
        dialect={} if dialect is None else dialect.to_dict(),
    )
    if label is not None and label not in owner.names:
        raise InputError(f"Expected --label to be one of {', '.join(owner.names)}, got {label!r}.")
    words = choose_passphrase(VARIABLE) if passphrase else None
    if ask is None:
        ask = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if (page or ask) and owner.data is None:
        flag = "--page" if page else "--ask"
        raise InputError(f"{flag}: expected --data or --database, whose columns you are asked about.")
    if page:
        with serve_set_up(owner, passphrase=words) as (address, form):
            typer.echo(f"Open {address} on this machine. Ctrl-C ends without writing anything.")
            form.wait()
        typer.echo(f"Wrote {form.written[0]}. Next: privada owner open-budget {form.written[0]}")
        return
    text = owner.text(answers=ask_for_answers(owner, label)) if ask else owner.text(label=label)
    paths, key = owner.create(text, passphrase=words)

    next_step = f"open the budget, once: privada owner open-budget {paths[0]}"
    if places := text.count(f'= "{FILL_IN}"'):
        next_step = (
            f'replace "{FILL_IN}" at {places} places in {paths[0]}. '
            f"They are public: take none from the rows. Then {next_step}"
        )
    plain = {"written": [str(path) for path in paths], "public_key": key.public}
    show.emit(plain, [*(f"Wrote {path}" for path in paths), f"Next: {next_step}"], as_json=as_json)


def ask_for_answers(owner: NewOwner, label: str | None) -> Answers:
    """Ask at the terminal for protection, budget and every column; a wrong answer is asked for again."""
    from privada.parties.schema import Schema
    from privada.privacy.guarantee import make_guarantee
    from privada.privacy.relation import Relation
    from privada.service.answers import RELATIONS, WARNINGS, Answers, read_number, read_whole

    typer.echo("Answers are public: take none from the rows. Ctrl-C ends without writing anything.")
    relation = _choose("What is protected?", RELATIONS, "add/remove")
    unit = Schema.of_numbers(bounds=(0.0, 1.0), width=1, size=1).unit

    def check_budget(epsilon: str, delta: str) -> None:
        # Refuse here what the checks of owner.toml would refuse later
        make_guarantee(
            epsilon=read_number("epsilon", epsilon),
            delta=read_number("delta", delta) if delta.strip() else None,
            rho=None,
            relation=Relation.parse(relation),
            unit=unit,
        )

    def ask_whole(question: str, key: str) -> str:
        def check(text: str) -> None:
            if read_whole(key, text) < 1:
                raise InputError(f"Expected {key} to be at least 1.")

        typer.echo(f"  ! {WARNINGS[key]}")
        return _ask(question, check)

    def ask_column(question: str) -> str:
        def check(text: str) -> None:
            if text and text not in owner.names:
                raise InputError(f"Expected one of {', '.join(owner.names)}, got {text!r}.")

        return _ask(question, check, default="")

    epsilon = _ask("Budget, epsilon: all that may ever be spent", lambda text: check_budget(text, ""))
    delta = _ask("Budget, delta (empty: none)", lambda text: check_budget(epsilon, text), default="")
    person = ask_column("Column that names the person (empty: each row is a person)")
    answers = Answers(
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        person_id=person,
        max_rows=ask_whole("Rows of a person that count at most", "max_rows") if person else "",
        size=ask_whole("Number of rows", "size") if relation == "replace-one" else "",
        label=ask_column("Column to predict (empty: none)") if label is None else label,
        columns=tuple(_ask_about_column(header) for header in owner.columns if header.name != person),
    )
    answers.check()
    return answers


def _ask_about_column(header: ColumnHeader) -> ColumnAnswer:
    from privada.parties.columns import KINDS
    from privada.service.answers import LEFT_OUT, WARNINGS, ColumnAnswer, is_right, list_kinds

    typer.echo(f"\nColumn {header.name!r}" + (f", declared as {header.kind}" if header.kind else ""))
    kind = _choose("What is it?", list_kinds(), header.kind or "number")
    if kind == LEFT_OUT:
        return ColumnAnswer(name=header.name, kind=kind)
    while True:
        low = high = values = ""
        declared = KINDS[kind][0]
        if declared.asks == "bounds":
            typer.echo(f"  ! {WARNINGS['bounds']}")
            low, high = typer.prompt("  Lowest"), typer.prompt("  Highest")
        if declared.asks == "values":
            typer.echo(f"  ! {WARNINGS['values']}")
            order = f", {declared.hint}" if declared.hint else ""
            values = typer.prompt(f"  All values, separated by semicolons{order}")
        missing = typer.confirm("  May values be missing?", default=False)
        answer = ColumnAnswer(name=header.name, kind=kind, low=low, high=high, values=values, missing=missing)
        problem = is_right(answer.check)
        if problem is None:
            return answer
        typer.echo(f"  {problem}")


def _choose(question: str, choices: Mapping[str, str], default: str) -> str:
    def check(text: str) -> None:
        if text not in choices:
            raise InputError(f"Expected one of {', '.join(choices)}, got {text!r}.")

    typer.echo(question)
    for name, meaning in choices.items():
        typer.echo(f"  {name:<12} {meaning}")
    return _ask("Your choice", check, default=default)


def _ask(question: str, check: Callable[[str], object], *, default: str | None = None) -> str:
    from privada.service.answers import is_right

    while True:
        text = str(typer.prompt(question, default=default, show_default=bool(default))).strip()
        problem = is_right(lambda answer=text: check(answer))
        if problem is None:
            return text
        typer.echo(f"  {problem}")


__all__ = ["ask_for_answers", "init"]
