"""``privada ledger``: read, check, export, copy and restore an owner's ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada import _files
from privada.cli import show
from privada.cli.options import AsJson, DecidedBy, decider_name, existing_file, new_file
from privada.exceptions import InputError, TamperError

if TYPE_CHECKING:
    from privada.privacy.ledger import Ledger
    from privada.privacy.receipt import OwnerKey, Receipt
    from privada.report.tables import Table

app = typer.Typer(no_args_is_help=True, help="Read, check, export, copy and restore an owner's ledger.")
Place = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER", help="A file, a URL, or an owner.toml that names it.", show_default=False
    ),
]
Key = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="The owner's key; not needed with an owner.toml.")
]
Receipts = Annotated[
    list[Path] | None,
    typer.Option(
        "--receipt", metavar="PATH", help="A release, a receipt as JSON, or a folder of them; repeatable."
    ),
]
DataSet = Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Only this data set.")]


def open_ledger(place: str, key: Path | None) -> Ledger:
    """Open an existing ledger; a command that reads never creates one."""
    from privada.privacy.ledger import Ledger

    where, owner_key, heads = find_ledger(place, key)
    return Ledger.open(where, owner_key, create=False, heads=heads)


def find_ledger(place: str, key: Path | None) -> tuple[str, OwnerKey, Path | None]:
    """Find an existing ledger: where it is, its key, and where its heads are recorded if not beside it."""
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.ledger.recovery import heads_of
    from privada.privacy.receipt import OwnerKey

    # An owner.toml names both the ledger and its key
    if place.endswith(".toml"):
        file = OwnerFile.read(existing_file(Path(place), "LEDGER"))
        place, key = file.ledger, file.key if key is None else key
    if key is None:
        raise InputError("A ledger file or URL needs its owner's key: --key FILE.")
    if "://" not in place:
        existing_file(Path(place), "LEDGER")
    return place, OwnerKey.load(existing_file(key, "--key")), heads_of(place, key)


@app.command("show", epilog="Example: privada ledger show clinic/owner.toml --last 10")
def show_(
    ledger: Place,
    key: Key = None,
    dataset: DataSet = None,
    last: Annotated[int, typer.Option("--last", min=1, help="How many lines to show.")] = 20,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHAT", help="Sums instead of lines: by learner.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show budgets, what was spent and what is left, and the last lines or what each learner spent."""
    from privada.report.ledger import budgets_table, by_learner, learners_table, lines_table, vintages_tables

    if by not in (None, "learner"):
        raise InputError(f"Expected --by to be learner, got {by!r:.80}.")

    with open_ledger(ledger, key) as opened:
        export = opened.export(dataset)
        datasets = export["datasets"]
        remaining = [opened.remaining(name) for name in datasets]
        spent = {name: opened.spent(name) for name in datasets}
    plain = {
        "owner": export["owner"],
        "datasets": {
            budget.dataset: {
                "budget": datasets[budget.dataset]["budget"],
                "filter": datasets[budget.dataset]["filter"],
                "spent": None if (paid := spent[budget.dataset]) is None else paid.to_dict(),
                "left": budget.share,
                "largest": None if budget.largest is None else budget.largest.to_dict(),
                "lines": datasets[budget.dataset]["lines"][-last:],
            }
            for budget in remaining
        },
    }
    if by is not None:
        plain["learners"] = by_learner(export)
    view: list[Table | str] = [
        budgets_table(export),
        *vintages_tables(export),
        *(str(budget) for budget in remaining),
        lines_table(export, last=last) if by is None else learners_table(export),
    ]
    show.emit(
        plain, view if datasets else ["The ledger is empty: no budget was opened yet."], as_json=as_json
    )


@app.command("verify", epilog="Example: privada ledger verify owner.toml --receipt a.release")
def verify(ledger: Place, key: Key = None, receipt: Receipts = None, as_json: AsJson = False) -> None:
    """Check every chain, sum, cost and signature, and the receipts that others hold.

    Without receipts, a tail that was cut off cannot be found. Ends with 5 if any
    check fails.
    """
    with open_ledger(ledger, key) as opened:
        report = opened.verify(read_receipts(receipt or ()))
    plain = {
        "verified": True,
        "datasets": report.datasets,
        "lines": report.lines,
        "receipts": report.receipts,
        "heads": dict(report.heads),
        "affected": list(report.affected),
    }
    heads = (f"Head of {name}: {head}" for name, head in report.heads.items())
    show.emit(plain, (str(report), *heads), as_json=as_json)


def read_receipts(paths: Iterable[Path]) -> list[Receipt]:
    """Read the receipts of release files, of JSON files, and of the folders of either."""
    from privada.exchange.posting import load_release
    from privada.privacy.receipt import Receipt

    files: list[Path] = []
    for path in paths:
        inside = [file for file in sorted(path.rglob("*")) if file.suffix in (".release", ".json")]
        if path.is_dir() and not inside:
            raise InputError(f"--receipt: there is no release and no receipt in {path}.")
        files += inside if path.is_dir() else [path]
    receipts = []
    for file in files:
        existing_file(file, "--receipt")
        if file.suffix == ".json":
            text = _files.read_text(file, error=TamperError)
            receipts.append(Receipt.from_json(text, name=file.name))
        else:
            receipts.append(load_release(file).receipt)
    return receipts


@app.command("export", epilog="Example: privada ledger export clinic/owner.toml --out ledger.json")
def export(
    ledger: Place,
    key: Key = None,
    dataset: DataSet = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to a new file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print all events as JSON, with the recipe by which dp-accounting alone computes the same sums."""
    with open_ledger(ledger, key) as opened:
        plain: dict[str, Any] = opened.export(dataset)
    if out is None:
        show.json_line(plain)
        return
    new_file(out, "--out").write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")
    show.emit({"written": str(out)}, (f"Wrote {out}",), as_json=as_json)


@app.command("backup", epilog="Example: privada ledger backup clinic/owner.toml backup.sqlite")
def backup(
    ledger: Place,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A new SQLite file.", show_default=False)],
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Write a consistent copy that opens and verifies as a ledger; the ledger may be in use.

    FILE.heads says where its chains end: keep the two together. Nothing is
    charged to a copy before privada ledger restore.
    """
    with open_ledger(ledger, key) as opened:
        opened.backup(new_file(target, "FILE"))
    show.emit(
        {"written": str(target), "heads": f"{target}.heads"},
        (f"Wrote {target} and {target.name}.heads",),
        as_json=as_json,
    )


@app.command("restore", epilog="Example: privada ledger restore clinic/owner.toml --receipt releases")
def restore(
    ledger: Place,
    key: Key = None,
    lost: Annotated[
        str | None,
        typer.Option(
            "--lost",
            metavar="WHAT",
            help="What was lost, if it is not recorded: nothing, or everything that was left.",
        ),
    ] = None,
    receipt: Receipts = None,
    by: DecidedBy = None,
    as_json: AsJson = False,
) -> None:
    """Continue a ledger that was put back from a copy; what it lacks is counted as spent.

    Where LEDGER.heads records later lines, their charges are counted. Otherwise
    say what was lost: with --lost nothing you state that nothing was written
    after the copy; with --lost everything the rest of the budget counts as
    spent. A signed line of the ledger says who decided, and when.
    """
    from privada.privacy.ledger import Ledger

    if lost not in (None, "nothing", "everything"):
        raise InputError(f"Expected --lost to be nothing or everything, got {lost!r:.80}.")
    place, owner_key, heads = find_ledger(ledger, key)
    receipts = read_receipts(receipt or ())
    lines = Ledger.restore(
        place,
        owner_key,
        by=decider_name(by),
        lost=lost,  # type: ignore[arg-type]  # checked above
        receipts=receipts,
        heads=heads,
    )
    plain = [{"dataset": line.dataset, "line": line.index, "text": line.detail["text"]} for line in lines]
    view = [f"{line.where}: {line.detail['text']}." for line in lines]
    show.emit(
        {"restored": plain}, view or ["Nothing is missing: every chain ends as recorded."], as_json=as_json
    )
