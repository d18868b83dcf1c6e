"""What is measured, in which order, and the figures and tables that are made of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from privada.exceptions import InputError
from privada.report.exhibit import Exhibit, Figure
from privada_lab.datasets.tables import TablePair, table_pairs
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.sharing import shared
from privada_lab.experiments.tables.contenders import CONTENDERS, Contender
from privada_lab.experiments.tables.measuring import Unit, measure
from privada_lab.experiments.tables.regrets import cells, dots, figures, tables
from privada_lab.experiments.tables.results import Results

EPSILONS, QUICK_EPSILONS = (0.5, 1.0, 2.0, 4.0), (1.0,)
QUICK = {  # smaller pairs of both tasks
    "development": (
        "wine: white to red",
        "heart: two hospitals to Hungary",
        "bank: working to students and retired",
        "news: weekdays to Sunday",
        "wind: other months to January",
        "ctg: states, low to high heart rates",
        "cancer: smooth to rough",
    ),
    "final": ("diabetes: younger to older", "accent: Americans, by the first coefficient"),
}
QUICK_LIMIT = 10.0  # seconds of a fit, beyond which a quick look does not wait


def run(
    *,
    runs: int,
    data: Path | None,
    track: Track = untracked,
    half: str | None = None,
    only: tuple[str, ...] = (),
    limit: float | None = None,
    out: Path | None = None,
    quick: bool = False,
) -> Iterator[Figure | Exhibit]:
    """Measure what is missing of a half, then yield its tables and figures; of what is there, if stopped.

    Parameters
    ----------
    runs : int
        Splits of each pair.
    half : "development" or "final", optional
        Final by default; of a quick look, development.
    only : tuple of str
        Parts of names of pairs or contenders; only those are measured.
    limit : float, optional
        Seconds that a fit may take; by default there is none, but of a quick look.
    out : Path, optional
        Folder of ``results.jsonl``.
    """
    chosen = half if half is not None else "development" if quick else "final"
    pairs, contenders = narrowed(table_pairs(chosen), only)
    if quick and pairs == table_pairs(chosen):
        pairs = tuple(pair for pair in pairs if pair.name in QUICK[chosen])
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    results = Results.read(out)
    waits = QUICK_LIMIT if quick and limit is None else limit
    units = list(_missing(results, pairs, contenders, epsilons, runs, data=data, out=out, limit=waits))
    try:
        for found in shared(measure, units, "splits of tables", track):
            results.add(found)
    except KeyboardInterrupt:
        results.add(Results.read(out))
    measured = tuple(table_pairs(chosen))
    yield from tables(results, measured, epsilons)
    yield from figures(results, measured, epsilons)
    yield from dots(cells(results, measured, epsilons))


def narrowed(
    pairs: tuple[TablePair, ...], only: tuple[str, ...]
) -> tuple[tuple[TablePair, ...], tuple[Contender, ...]]:
    """The pairs and contenders whose names hold one of some words; all, where no word is about them."""
    kept = tuple(pair for pair in pairs if any(word.lower() in pair.name.lower() for word in only))
    some = tuple(each for each in CONTENDERS if any(word.lower() in each.name.lower() for word in only))
    if only and not kept and not some:
        raise InputError(f"Expected --only to be part of a pair's or a contender's name, got {only}.")
    return kept or pairs, some or CONTENDERS


def _missing(
    results: Results,
    pairs: tuple[TablePair, ...],
    contenders: tuple[Contender, ...],
    epsilons: tuple[float, ...],
    runs: int,
    *,
    data: Path | None,
    out: Path | None,
    limit: float | None,
) -> Iterator[Unit]:
    """What has no result yet, the first split of all pairs before the second."""
    for split in range(runs):
        for pair in pairs:
            todo = tuple(
                (each.name, epsilon)
                for each in contenders
                if each.suits(pair)
                for epsilon in (epsilons if each.spends else (None,))
                if not results.settled((pair.name, each.name, epsilon, split), limit)
            )
            if todo:
                yield Unit(pair=pair.name, split=split, todo=todo, data=data, out=out, limit=limit)


__all__ = ["EPSILONS", "narrowed", "run"]
