"""How the result of a study is shown, by ``run`` and by ``learn``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privada.cli import show
from privada.cli.options import new_file
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.report.page import Page
    from privada.report.tables import Table
    from privada.studies.outcome import Outcome
    from privada.studies.study import Study

    Keep = Callable[[Outcome], Path]


NAMED = {"confusion": "rows by true class, and what was predicted of them", "auc": "area under the ROC curve"}
MARKS = ('"written_by": "privada"', 'content="written by privada"')  # how an earlier result is known


def prepare(*files: Path | None) -> None:
    """Check that all files can be written, so that a failure comes before anything is charged.

    An existing file is replaced only if an earlier run wrote it: a mistyped
    ``--out`` must not destroy a ledger, a study or data.
    """
    for file in files:
        if file is None:
            continue
        if file.exists() and not file.is_file():
            raise InputError(f"{file} is a folder or a device; name a file.")
        if file.exists() and not any(mark in _beginning(file) for mark in MARKS):
            raise InputError(f"{file} is there and was not written by an earlier run; name another file.")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = not file.exists()
            with file.open("a", encoding="utf-8"):
                pass
            if fresh:
                file.unlink()
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from None


def prepare_model(file: Path | None, study: Study) -> Keep | None:
    """How the model will be saved, if one is wanted; that there can be one is checked before any charge."""
    if file is None:
        return None
    from privada.studies.model import model_maker

    path, make = new_file(file, "--model"), model_maker(study)

    def keep(outcome: Outcome) -> Path:
        saved: Path = make(outcome.learnt).save(path)
        return saved

    return keep


def _beginning(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(2000).decode("utf-8", errors="replace")


def finish(
    outcome: Outcome, *, out: Path | None, page: Path | None, as_json: bool, keep: Keep | None = None
) -> None:
    """Show the result, which is paid for by now, then write the requested files."""
    view: list[Table | str] = [
        outcome.study.title,
        *_results(outcome),
        *_releases(outcome),
        *_ledgers(outcome),
    ]
    show.emit(outcome.to_dict(), view, as_json=as_json)
    if out is not None:
        out.write_text(show.json_text(outcome.to_dict(), indent=2) + "\n", encoding="utf-8")
    if page is not None:
        outcome_page(outcome).save(page)
    saved = None if keep is None else keep(outcome)
    written = [f"Wrote {path}" for path in (out, page, saved) if path is not None]
    if written and not as_json:
        show.emit({}, written, as_json=False)


def _results(outcome: Outcome) -> list[Table]:
    from privada.report.plain import tables_of

    return tables_of(_numbers(outcome.result), title=f"Result of {outcome.study.method.name}")


def _numbers(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A result without what is in the table of releases, and without the parts of a model."""
    kept = {name: value for name, value in plain.items() if name not in ("guarantee", "guarantees", "stamps")}
    if "hypothesis" in kept:
        model = kept["hypothesis"]
        kept["hypothesis"] = model.get("reason", f"{model['form']}, written out in the JSON")
    if "synthetic_target" in kept:
        rows = len(kept["synthetic_target"]["weights"])
        kept["synthetic_target"] = f"{rows} public rows with weights and probabilities, in the JSON"
    return {NAMED.get(name, name): value for name, value in kept.items() if value is not None}


def _releases(outcome: Outcome) -> list[Table]:
    from privada.report.tables import Table

    rows = tuple(
        (
            release.kind,
            release.receipt.dataset,
            str(release.guarantee),
            ", ".join(release.stamps),
            str(release.receipt.index),
            release.receipt.public[:12],
        )
        for release in outcome.releases
    )
    columns = ("release", "data set", "guarantee", "stamps", "ledger line", "signed by")
    return [Table(title="Releases", columns=columns, rows=rows).without_empty_columns()]


def _ledgers(outcome: Outcome) -> list[Table]:
    from privada.report.ledger import budgets_table, lines_table

    made = []
    for name, export in outcome.ledgers.items():
        made.append(lines_table(export, title=f"Ledger lines that were written at {name}"))
        made.append(budgets_table(export, title=f"Budget of {name}"))
    return made


def outcome_page(outcome: Outcome) -> Page:
    """The page of a study."""
    from privada.report.page import Page, Panel

    panels = [
        Panel(
            title=outcome.study.method.title,
            guarantee=str(outcome.study.guarantee),
            stamps=outcome.stamps,
            text="Every number below comes from releases: noisy, paid for, and signed by their owners.",
            tables=tuple(_results(outcome)),
        ),
        Panel(title="Releases", tables=tuple(_releases(outcome))),
    ]
    if outcome.ledgers:
        panels.append(Panel(title="Ledgers", tables=tuple(_ledgers(outcome))))
    asked, promised = ", ".join(outcome.study.parties), outcome.study.guarantee
    lead = f"Method: {outcome.study.method.name}. Asked: {asked}. Budget of the study: {promised}."
    return Page(title=outcome.study.title, lead=lead, panels=tuple(panels), stamps=outcome.stamps)


__all__ = ["finish", "outcome_page", "prepare", "prepare_model"]
