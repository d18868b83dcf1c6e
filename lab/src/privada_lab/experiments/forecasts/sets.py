"""The sets on which forecasts are held against outcomes: tables, and generated pairs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from privada.parties.schema import Category, Number
from privada_lab.datasets.table_readers import is_one_of
from privada_lab.datasets.table_split import NumberBySource, Table, TablePair
from privada_lab.datasets.tables import table_pair, table_pairs

SHIPPED = ("cancer: smooth to rough", "diabetes: younger to older", "digits: light to dark")
GENERATED, QUICK_GENERATED = 8, 3
WIDTHS, ROWS = (3, 15), (150, 3000)
_SEED = 24


def find_sets(data: Path | None, *, half: str | None = None, quick: bool = False) -> tuple[TablePair, ...]:
    """scikit-learn's tables, or those of a half where there is a data folder; and generated ones."""
    shipped = tuple(table_pair(name) for name in SHIPPED)
    tables = shipped if data is None or quick else table_pairs(half or "final")
    return (*tables, *(generated(number) for number in range(QUICK_GENERATED if quick else GENERATED)))


def generated(number: int) -> TablePair:
    """A pair with a shift of rows and of what they mean; classes and numbers in turn.

    >>> split = generated(1).split(None, seed=0)
    >>> split.pair.task, len(split.train) > 100
    ('classification', True)
    """
    rng = np.random.default_rng([_SEED, number])
    width = int(rng.integers(*WIDTHS))
    rows = int(np.exp(rng.uniform(*np.log(ROWS))))
    classes = number % 2 == 1
    label = Category(name="label", values=("no", "yes")) if classes else Number(name="label", low=-6, high=6)
    return TablePair(
        name=f"generated {number}: here to there",
        half="development",
        read=partial(_generate, number=number, width=width, rows=rows, classes=classes),
        columns=tuple(NumberBySource(name=f"x{at}") for at in range(width)),
        label=label,
        private=is_one_of("side", "there"),
        rows=rows,
    )


def _generate(folder: Path | None, *, number: int, width: int, rows: int, classes: bool) -> Table:  # noqa: ARG001
    """A linear rule that moves between two normal domains, with a bend and noise."""
    rng = np.random.default_rng([_SEED, number, 1])
    count = max(2 * rows, 1000)
    side = np.repeat(["here", "there"], count)
    mixing = np.eye(width) + rng.normal(0, 0.5 / np.sqrt(width), size=(width, width))
    moved = rng.normal(0, rng.uniform(0, 1), size=width) * (side == "there")[:, None]
    X = rng.normal(size=(2 * count, width)) @ mixing + moved
    here = rng.normal(0, 1 / np.sqrt(width), size=width)
    there = here + rng.normal(0, rng.uniform(0, 1) / np.sqrt(width), size=width)
    score = np.where(side == "here", X @ here, X @ there) + 0.3 * np.sin(2 * X[:, 0])
    score += rng.normal(0, rng.uniform(0.2, 1.0), size=len(score))
    y = np.where(score > 0, "yes", "no").astype(object) if classes else score
    return Table({**{f"x{at}": X[:, at] for at in range(width)}, "side": side.astype(object), "label": y})


__all__ = ["find_sets", "generated"]
