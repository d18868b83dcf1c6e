"""``privada forecast``: what a study may expect, at its budget and at others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privada.cli import show
from privada.cli.options import AsJson, StudyFile, existing_file

if TYPE_CHECKING:
    from privada.report.tables import Table
    from privada.studies.forecast import Outlook

EXAMPLE = "privada forecast study.toml"
COLUMNS = ("guarantee", "expected error", "in four cases of five", "each number within (95 %)")


def command(study: StudyFile, as_json: AsJson = False) -> None:
    """Say what a study may expect at a quarter to four times its budget. Nothing is asked or spent.

    The expected error is a share of the error of doing nothing; below 100 %, something is gained. Of counts
    and evaluations it is the error itself. It is made of public facts alone: the size, the noise, and your
    own rows.
    """
    import warnings

    from privada.exceptions import PrivadaWarning
    from privada.studies.forecast import forecast_study
    from privada.studies.study import Study

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)  # that little is expected is said in the table
        read = Study.read(existing_file(study, "STUDY"))
        outlooks = forecast_study(read)
    view: list[Table | str] = [_table(read.title, outlooks), *_beside(outlooks)]
    show.emit({"title": read.title, "outlooks": [_plain(each) for each in outlooks]}, view, as_json=as_json)


def _table(title: str, outlooks: list[Outlook]) -> Table:
    from privada.report.tables import Table

    table = Table(title=title, columns=COLUMNS, rows=tuple(_row(each) for each in outlooks))
    return table.without_empty_columns()


def _row(outlook: Outlook) -> tuple[str, ...]:
    """The forecast, or, where there is none, the noise of what would be released."""
    found = outlook.forecast
    if found is not None:
        low, middle, high = map(_percent, (found.low, found.ratio, found.high))
        return str(outlook.guarantee), middle, f"{low} to {high}", ""
    widths = [f"{name} ±{width:.3g}" for name, width in outlook.half_widths.items()]
    return str(outlook.guarantee), "", "", ", ".join(widths[:3])


def _percent(share: float) -> str:
    """Two digits of a small share, whole percents of others."""
    return f"{share:.0%}" if share >= 0.1 else f"{share * 100:.2g}%"


def _beside(outlooks: list[Outlook]) -> list[str]:
    """What 100 % is, and a word of advice."""
    found = [each.forecast for each in outlooks if each.forecast is not None]
    if not found:
        return [
            "What this study asks has no forecast of its error; the noise of each number is known exactly."
        ]
    lines = [found[0].explanation]
    if not any(each.worthwhile for each in found):
        lines.append("No gain is expected at any of these budgets: keep the budget.")
    return lines


def _plain(outlook: Outlook) -> dict[str, Any]:
    found = outlook.forecast
    told = None if found is None else {"ratio": found.ratio, "low": found.low, "high": found.high}
    beside, measure = (None, None) if found is None else (found.beside or None, found.measure or None)
    return {
        "guarantee": str(outlook.guarantee),
        "forecast": told,
        "beside": beside,
        "measure": measure,
        "half_widths": outlook.half_widths,
    }


__all__ = ["EXAMPLE", "command"]
