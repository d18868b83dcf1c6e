"""``privada owner check``: read all rows once and say what does not fit, to the owner alone."""

from __future__ import annotations

from typing import Any

import typer

from privada.cli import show
from privada.cli.exits import Exit
from privada.cli.options import AsJson, OwnerToml, existing_file

EXAMPLE = "Example: privada owner check clinic/owner.toml"


def command(owner: OwnerToml, as_json: AsJson = False) -> None:
    """Read all rows once and say what does not fit the schema: exact counts, for your eyes only.

    Counts values that cannot be parsed, are missing, lie outside the bounds or are none of the categories,
    and persons with more rows than the bound. Nothing is charged, and nothing leaves this machine. If all
    rows fit, this is remembered beside the ledger, and the same rows are not read again before an answer.
    """
    from privada.parties.checks.counting import check_file
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    with show.working("Reading all rows"):
        report, remembered = check_file(file)
    plain = report.to_dict() | {"remembered": remembered}
    show.emit(plain, _view(plain), as_json=as_json)
    if not report.fits:
        raise typer.Exit(Exit.FOUND)


def _view(plain: dict[str, Any]) -> list[Any]:
    from privada.report.tables import Table

    faults = ("unparsable", "missing", "infinite", "fraction", "outside", "below", "above")
    names = (*faults, "first_line", "first_file")
    body = tuple(
        (each["name"], *(str(each.get(name, "")) for name in names), "yes" if each["fits"] else "no")
        for each in plain["columns"]
    )
    heads = tuple(name.replace("_", " ") for name in names)
    note = (
        "Exact counts: do not publish them. Values below or above the bounds are clipped, which is no fault."
    )
    table = Table(title=f"{plain['rows']} rows", columns=("column", *heads, "fits"), rows=body, note=note)
    return [table.without_empty_columns(), *_persons(plain), *_lines(plain), _verdict(plain)]


def _persons(plain: dict[str, Any]) -> list[str]:
    if "persons" not in plain:
        return []
    found = plain["persons"]
    said = f"{found['persons']} persons; {found['over']} have more rows than the bound"
    said += f", and {found['dropped']} of their rows are left out."
    return [said, *([f"{found['missing']} rows name no person."] if found["missing"] else [])]


def _lines(plain: dict[str, Any]) -> list[str]:
    if not plain.get("ragged_lines"):
        return []
    where = f" of {plain['first_ragged_file']}" if "first_ragged_file" in plain else ""
    return [
        f"{plain['ragged_lines']} lines have more or fewer fields than the header; "
        f"the first is line {plain['first_ragged_line']}{where}."
    ]


def _verdict(plain: dict[str, Any]) -> str:
    if not plain["fits"]:
        return "The rows do not fit the schema: the owner cannot be loaded."
    again = " The same rows will not be read again to check them." if plain["remembered"] else ""
    return f"All rows fit.{again}"


__all__ = ["EXAMPLE", "command"]
