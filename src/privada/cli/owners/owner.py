"""``privada owner``: set up an owner, and give learners its public schema."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    OwnerToml,
    csv_dialect,
    existing_file,
    new_file,
)
from privada.cli.owners import allow, check, console_user, decisions, key, serve
from privada.cli.owners.learners import learners
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.parties.csv.dialect import Dialect
    from privada.service.setup.headers import ColumnHeader
    from privada.service.setup.making import NewOwner

app = typer.Typer(no_args_is_help=True, help="Set up an owner, and give learners its public schema.")
app.add_typer(key.app, name="key")
app.command("serve", epilog=f"Example: {serve.EXAMPLE}")(serve.command)
app.command("learners", epilog="Example: privada owner learners clinic/owner.toml")(learners)
app.command("allow", epilog=f"Example: {allow.EXAMPLE}")(allow.command)
_A_DIGEST = "5c" * 32
_DECIDE = f"Example: privada owner {{}} clinic/owner.toml {_A_DIGEST} --by 'Dr Who'"
app.command("approve", epilog=_DECIDE.format("approve"))(decisions.approve)
app.command("refuse", epilog=_DECIDE.format("refuse") + " --reason 'ask for less'")(decisions.refuse)
app.command("console-user", epilog=f"Example: {console_user.EXAMPLE}")(console_user.command)
app.command("check", epilog=check.EXAMPLE)(check.command)


@app.command("init", epilog="Example: privada owner init clinic --data patients.parquet --label outcome")
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The owner's folder.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="The rows: CSV, Parquet, or a folder of either."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Identity of the data set; by default the file's name."),
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
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="Of the database.")] = None,
    ask: Annotated[
        bool | None,
        typer.Option("--ask/--no-ask", help="Ask for bounds, values and budget; by default at a terminal."),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Ask on a page of this machine, in your browser, instead.")
    ] = False,
    passphrase: Annotated[
        bool,
        typer.Option(
            "--passphrase", help="Protect the key: asked for twice, or taken from PRIVADA_KEY_PASSPHRASE."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write owner.toml with every key explained, a new signing key and an empty ledger.

    At a terminal, or with --page in your browser, you are asked for bounds,
    values and budget; otherwise there are places to fill in before the owner can
    be loaded. Only the names of the columns are read, and their declared types
    if there are any; never a value.
    How a CSV file is written is what you say by options, and stands in
    owner.toml under data.csv.
    """
    from privada.methods.registry import methods
    from privada.privacy.keys.passphrase import VARIABLE, choose_passphrase
    from privada.service.setup.making import NewOwner

    dialect = csv_dialect(
        delimiter=delimiter,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        quote=quote,
        date_format=date_format,
    )
    source = _source(data, database, table)
    owner = NewOwner(
        folder=folder,
        data=source,
        columns=tuple(_headers(source, dialect)),
        methods=tuple(methods()),
        name=name,
        dialect={} if dialect is None else dialect.to_dict(),
    )
    if label is not None and label not in owner.names:
        raise InputError(f"Expected --label to be one of {', '.join(owner.names)}, got {label!r}.")
    words = choose_passphrase(VARIABLE) if passphrase else None
    if page:
        _on_page(owner, words)
        return
    text = _complete(owner, label) if _is_asking(ask, as_json) else owner.text(label=label)
    paths, key = owner.create(text, passphrase=words)
    plain = {"written": [str(path) for path in paths], "public_key": key.public}
    show.emit(plain, (*(f"Wrote {path}" for path in paths), _advice(paths[0], text)), as_json=as_json)


def _is_asking(ask: bool | None, as_json: bool) -> bool:
    """As the options say; else whether somebody sits at a terminal."""
    if ask is not None:
        return ask
    return not as_json and sys.stdin.isatty() and sys.stdout.isatty()


def _on_page(owner: NewOwner, passphrase: str | None) -> None:
    from privada.service.setup.hosting import serve_set_up

    if owner.data is None:
        raise InputError("--page: expected --data or --database, whose columns you are asked about.")
    with serve_set_up(owner, passphrase=passphrase) as (address, page):
        typer.echo(f"Open {address} on this machine. Ctrl-C ends without writing anything.")
        page.wait()
    typer.echo(f"Wrote {page.written[0]}. Next: privada owner open-budget {page.written[0]}")


def _complete(owner: NewOwner, label: str | None) -> str:
    from privada.cli.owners.asking import ask_for_answers

    if owner.data is None:
        raise InputError("--ask: expected --data or --database, whose columns you are asked about.")
    return owner.text(answers=ask_for_answers(owner, label))


def _source(data: Path | None, database: str | None, table: str | None) -> Any:
    """The file or the table that options name; None for neither."""
    from privada.parties.sources.databases import Database

    if (database is None) != (table is None) or (database and data):
        raise InputError("Expected either --data, or --database and --table.")
    return data if database is None else Database(url=database, table=table)


def _headers(source: Any, dialect: Dialect | None) -> list[ColumnHeader]:
    from privada.service.setup.headers import ColumnHeader, read_header, read_table_header

    if source is None:
        return [ColumnHeader("x")]
    return read_header(source, dialect) if isinstance(source, Path) else read_table_header(source)


def _advice(path: Path, text: str) -> str:
    from privada.service.setup.template import FILL_IN

    places = text.count(f'= "{FILL_IN}"')
    fill = (
        f'replace "{FILL_IN}" at {places} places in {path}. They are public: take none from the rows. Then '
    )
    return f"Next: {fill if places else ''}open the budget, once: privada owner open-budget {path}"


@app.command("open-budget", epilog="Example: privada owner open-budget clinic/owner.toml")
def open_budget(owner: OwnerToml, as_json: AsJson = False) -> None:
    """Open the budget that owner.toml names, once and for all.

    This fixes data set, budget and accounting: none of them can be changed
    later, and a data set under another name has another budget. Nothing is
    answered before. Running it again changes nothing.
    """
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    receipt = file.open_budget()
    plain = {"dataset": receipt.dataset, "budget": file.budget.to_dict(), "opened": receipt.time}
    plain |= {} if file.vintage is None else {"vintage": file.vintage.to_dict()}
    rows = "" if file.vintage is None else f" It is for {file.vintage}."
    said = f"The budget of {receipt.dataset!r} is open since {receipt.time}: {file.budget}.{rows}"
    show.emit(plain, (said,), as_json=as_json)


@app.command("schema", epilog="Example: privada owner schema clinic/owner.toml --out schema.toml")
def schema(
    owner: OwnerToml,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it to a new file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the owner card, which learners need: schema, relation and public key, as TOML.

    Give it to them; a study names it by schema = "schema.toml" under owners.NAME.
    """
    from privada.parties.owner_file import OwnerFile

    card = OwnerFile.read(existing_file(owner, "OWNER_TOML")).card()
    text = card.to_toml()
    if out is not None:
        new_file(out, "--out").write_text(text, encoding="utf-8")
    plain = {
        "relation": card.relation.value,
        "public_key": card.public_key,
        "schema": card.schema.to_dict(),
    }
    lines = text.rstrip().split("\n") if out is None else [f"Wrote {out}"]
    show.emit(plain, lines, as_json=as_json)


__all__ = ["app", "init", "open_budget", "schema"]
