"""``privada owner``: set up an owner, and give learners its public schema."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import AsJson, OwnerToml, existing_file, new_file
from privada.cli.owners import check, decisions, key, serve
from privada.cli.owners.learners import learners
from privada.cli.owners.template import FILL_IN, ColumnHeader, owner_toml
from privada.exceptions import InputError, SchemaError

if TYPE_CHECKING:
    from privada.parties.csv.dialect import Dialect

TOML, KEY, LEDGER = "owner.toml", "owner.key", "ledger.sqlite"
app = typer.Typer(no_args_is_help=True, help="Set up an owner, and give learners its public schema.")
app.add_typer(key.app, name="key")
app.command("serve", epilog=f"Example: {serve.EXAMPLE}")(serve.command)
app.command("learners", epilog="Example: privada owner learners clinic/owner.toml")(learners)
_A_DIGEST = "5c" * 32
_DECIDE = f"Example: privada owner {{}} clinic/owner.toml {_A_DIGEST} --by 'Dr Who'"
app.command("approve", epilog=_DECIDE.format("approve"))(decisions.approve)
app.command("refuse", epilog=_DECIDE.format("refuse") + " --reason 'ask for less'")(decisions.refuse)
app.command("check", epilog=check.EXAMPLE)(check.command)


def _of_csv(flag: str, what: str) -> Any:
    return typer.Option(flag, metavar="TEXT", help=what, show_default=False)


@app.command("init", epilog="Example: privada owner init clinic --data patients.parquet --label outcome")
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The owner's folder.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="The rows: CSV, Parquet, or a folder of Parquet files."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Identity of the data set; by default the file's name."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="The column to predict.")
    ] = None,
    delimiter: Annotated[str | None, _of_csv("--delimiter", "Between fields of CSV: ';' or a tab.")] = None,
    decimal: Annotated[str | None, _of_csv("--decimal", "Before the fraction of a number: ','.")] = None,
    thousands: Annotated[str | None, _of_csv("--thousands", "Between groups of digits: '.'.")] = None,
    encoding: Annotated[str | None, _of_csv("--encoding", "Of the text: cp1252, latin-1, utf-16.")] = None,
    quote: Annotated[str | None, _of_csv("--quote", "Around fields.")] = None,
    date_format: Annotated[str | None, _of_csv("--date-format", "Of dates: '%d.%m.%Y'.")] = None,
    passphrase: Annotated[
        bool,
        typer.Option(
            "--passphrase", help="Protect the key: asked for twice, or taken from PRIVADA_KEY_PASSPHRASE."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write owner.toml with every key explained, a new signing key and an empty ledger.

    Only the names of the columns are read from the file, and their declared
    types if it is Parquet; never a value. How a CSV file is written is what you
    say by options, and stands in owner.toml under data.csv. You fill in bounds, classes and budget
    before the owner can be loaded.
    """
    from privada.methods.registry import methods
    from privada.privacy.keys.passphrase import VARIABLE, choose_passphrase
    from privada.privacy.ledger import Ledger
    from privada.privacy.receipt import OwnerKey

    said = {"delimiter": delimiter, "decimal": decimal, "thousands": thousands, "encoding": encoding}
    dialect = _dialect(said | {"quote": quote, "date_format": date_format})
    columns = [ColumnHeader("x")] if data is None else read_header(data, dialect)
    names = [column.name for column in columns]
    if label is not None and label not in names:
        raise InputError(f"Expected --label to be one of {', '.join(names)}, got {label!r}.")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [new_file(folder / part, "DIR") for part in (TOML, KEY, LEDGER)]
    text = owner_toml(
        name=name or (data.stem if data else folder.resolve().name),
        path="data.parquet" if data is None else os.path.relpath(data.resolve(), folder.resolve()),
        ledger=LEDGER,
        key=KEY,
        methods=methods(),
        columns=columns,
        label=label,
        dialect={} if dialect is None else dialect.to_dict(),
    )
    words = choose_passphrase(VARIABLE) if passphrase else None
    paths[0].write_text(text, encoding="utf-8")
    key = OwnerKey.generate()
    key.save(paths[1], passphrase=words)
    Ledger.open(paths[2], key).close()
    plain = {"written": [str(path) for path in paths], "public_key": key.public}
    show.emit(plain, (*(f"Wrote {path}" for path in paths), _advice(paths[0], text)), as_json=as_json)


def _advice(path: Path, text: str) -> str:
    places = text.count(f'= "{FILL_IN}"')
    return (
        f'Next: replace "{FILL_IN}" at {places} places in {path}. They are public: take none from the rows. '
        f"Then open the budget, once: privada owner open-budget {path}"
    )


def _dialect(said: dict[str, str | None]) -> Dialect | None:
    """The dialect that options declare; None if they are silent."""
    from privada.parties.csv.dialect import Dialect

    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    given |= {"delimiter": "\t"} if given.get("delimiter") in ("tab", "\\t") else {}
    return Dialect(**given) if given else None


def read_header(path: Path, dialect: Dialect | None = None) -> list[ColumnHeader]:
    """Names of a file's columns and, of Parquet, whether they are declared as numbers. No value is read."""
    from privada.parties.csv.dialect import is_csv

    if not (path.is_file() or path.is_dir()):
        raise InputError(f"--data: there is nothing at {path}, or it is neither a file nor a folder.")
    return _csv_header(path, dialect) if dialect or is_csv(path.name) else _parquet_header(path)


def _csv_header(path: Path, dialect: Dialect | None) -> list[ColumnHeader]:
    import pyarrow as pa

    from privada.parties.csv.dialect import Dialect
    from privada.parties.csv.reading import CsvFile

    file = CsvFile(path.name, lambda: pa.OSFile(str(path)), dialect or Dialect(), ())
    try:
        return [ColumnHeader(name) for name in file.names()]
    except SchemaError as error:
        raise InputError(f"--data: {error} Say how it is written: --encoding, --delimiter.") from None


def _parquet_header(path: Path) -> list[ColumnHeader]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        fields: Any = ds.dataset(path, format="parquet").schema
    except (pa.ArrowInvalid, OSError) as error:
        kind = type(error).__name__
        raise InputError(f"--data: {path.name} is neither CSV nor Parquet ({kind}).") from None
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return [ColumnHeader(field.name, number=any(holds(field.type) for holds in numbers)) for field in fields]


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
    said = f"The budget of {receipt.dataset!r} is open since {receipt.time}: {file.budget}."
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


__all__ = ["app", "init", "open_budget", "read_header", "schema"]
