"""``privada reproduce papers``: one page with every table and figure of the five papers.

The page is made of the rows of `items`, one TOML file for each paper, and of the results of the experiments
that they name. It is written to ``--out``, by default to ``docs/measurements`` below the current folder;
pictures stand in a folder ``papers`` beside it. With ``--jobs 2`` two experiments run side by side.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from privada.exceptions import InputError
from privada.parties.one_process.process_ledger import public_rows
from privada.report.exhibit import Figure
from privada_lab.experiments.papers.item import PaperItem
from privada_lab.experiments.papers.items import all_items
from privada_lab.experiments.papers.page import Measured, missing_items, write_page
from privada_lab.experiments.registry import Track, experiment, untracked
from privada_lab.experiments.sharing import shared

HERE = Path("docs/measurements")


def run(
    *,
    runs: int,
    data: Path | None = None,
    track: Track = untracked,
    out: Path | None = None,
    quick: bool = False,
    only: tuple[str, ...] = (),
) -> Iterator[Figure]:
    """Run every experiment that an item names, write the page, and yield how much of it there is.

    ``runs`` are those of every experiment, if more than 1; by default each makes its own number.
    """
    folder = _folder(out)
    items = all_items()
    names = [name for name in _experiments(items) if not only or any(each in name for each in only)]
    measure = partial(measured, runs=runs if runs > 1 else None, quick=quick, data=data)
    found = {each.name: each for each in shared(measure, names, "experiments", track)}
    write_page(items, found, folder, command=_command(data, quick=quick, runs=runs, only=only))
    absent = missing_items(items, found)
    told = f"of {len(items)}; without: {', '.join(f'{item.paper} {item.name}' for item in absent) or 'none'}"
    yield Figure("papers_items_shown", len(items) - len(absent), None, "higher", told, max(1, runs))
    seconds = sum(each.seconds for each in found.values())
    yield Figure("papers_page_minutes", seconds / 60, 30.0 if quick else None, "lower", "of one core", 1)


def measured(name: str, *, runs: int | None, quick: bool, data: Path | None) -> Measured:
    """All that one experiment finds; its data are public, so that a process of its own may forget them."""
    asked = experiment(name)
    count = asked.count(None if quick else runs, quick=quick)
    settings = asked.taken(out=None, quick=quick)
    start = time.process_time()
    with warnings.catch_warnings(), public_rows():
        warnings.simplefilter("ignore")
        found = tuple(asked.run(runs=count, data=data, track=untracked, **settings))
    return Measured(name, count, time.process_time() - start, found)


def _experiments(items: tuple[PaperItem, ...]) -> list[str]:
    """Each once, in the order of the papers."""
    return list(dict.fromkeys(item.experiment for item in items))


def _folder(out: Path | None) -> Path:
    if out is None and not HERE.is_dir():
        raise InputError(f"Expected --out DIR, where the page goes: {HERE} is not below this folder.")
    return HERE if out is None else out


def _command(data: Path | None, *, quick: bool, runs: int, only: tuple[str, ...] = ()) -> str:
    """The command that makes the page; where the data are is everybody's own matter."""
    parts = ["privada reproduce papers"]
    parts += ["--quick"] if quick else [f"--runs {runs}"] if runs > 1 else []
    parts += ["--data DIR"] if data is not None else []
    return " ".join([*parts, *(f"--only {each}" for each in only)])


__all__ = ["measured", "run"]
