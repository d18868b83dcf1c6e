"""``privada card``: what a learner can do with an owner card before it asks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import AsJson, existing_file, new_file
from privada.exceptions import InputError

SAID = (
    "These rows are made of the card alone: no private row was read, and nothing was charged. "
    "They say nothing about the owner's rows but what the card says."
)
app = typer.Typer(no_args_is_help=True, help="Use an owner card before you ask.")


@app.callback()
def group() -> None:
    """Use an owner card before you ask."""


@app.command("dummy", epilog="Example: privada card dummy schema.toml --rows 500 --out dummy.csv")
def dummy(
    card: Annotated[Path, typer.Argument(metavar="SCHEMA_TOML", help="The owner card.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="A new file: .csv or .parquet.", show_default=False),
    ],
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many rows.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same rows.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Write rows that fit an owner's schema, to develop with: drawn evenly, from the card alone. Cost: 0."""
    from privada.parties.dummy import make_dummy_rows
    from privada.parties.owner_file import Card

    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"Expected --out to end with .csv or .parquet, got {out.name!r:.80}.")
    schema = Card.read(existing_file(card, "SCHEMA_TOML")).schema
    _write(make_dummy_rows(schema, rows=rows, random_state=seed), new_file(out, "--out"))
    plain = {"written": str(out), "rows": rows, "cost": 0, "private": False}
    show.emit(plain, (f"Wrote {out}", SAID), as_json=as_json)


def _write(table: Any, path: Path) -> None:
    if path.suffix == ".csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table, path)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path)


__all__ = ["app", "dummy"]
