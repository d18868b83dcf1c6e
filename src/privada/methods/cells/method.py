"""Cells: the method and its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.method import Method, Public, StudyPlace, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from privada.methods.cells.learner import CellEstimates
    from privada.methods.cells.questions.partition import Bins, Partition
    from privada.methods.forecast import Forecast
    from privada.parties.schema import Schema


def read_centers(place: StudyPlace, key: str) -> FloatArray | None:
    """The centres of a public file of a study, encoded by the owner's schema."""
    from privada.methods._public_rows import public_rows

    if key in place.section:
        return public_rows(place.section, key, place.home, place.schema)
    if "bins" not in place.section:
        place.section.fail("", "expected centers or bins.")
    return None


def read_bins(place: StudyPlace, key: str) -> dict[str, list[float]] | None:
    """The edges in a study's table of bins; a mistake is reported with the feature's line."""
    if key not in place.section:
        return None
    table, features = place.section.section(key), place.schema.features
    bins = {feature: table.array(feature) for feature in features if feature in table}
    table.done()
    for feature, edges in bins.items():
        with table.blaming(feature):
            make_bins(feature, edges, features)
    return bins


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells(Method):
    """Private counts, sums and histograms over public cells."""

    name = "cells"
    title = "Private counts, sums and histograms over public cells"
    paper = "what papers 000 and 001 share, made sound"
    situation = Situation(
        want="counts",
        because="one noisy release counts rows, by class if you like, in cells that you declare.",
    )
    question_paths = ("privada.methods.cells.questions.statistics:CellStatistics",)
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.cells.estimator:CellClassifier",
        "means": "privada.methods.cells.estimator:CellMeans",
    }
    renamed: ClassVar[Mapping[str, str]] = {"norm_bound": "radius"}

    centers: Any = setting(
        None,
        "Public centres, such as k-means centres of a public source: each has a cell of the rows nearest to "
        "it. In a study, a CSV or Parquet file with the owner's columns.",
        kind="array of shape (cells, features)",
        example='"centers.csv"',
        read=read_centers,
    )
    bins: Mapping[Any, Sequence[float]] | None = setting(
        None,
        "In place of centers: public edges of features, one table for each. Missing values have their own "
        "cell.",
        kind="mapping of feature to edges",
        example="{ age = [40, 60] }",
        read=read_bins,
    )
    by_label: bool = setting(False, "Count rows by class.")
    radius: float | None = setting(
        None, "Ask for sums too, of rows that are clipped to this public norm.", example="1.0"
    )
    recentred: bool = setting(
        False, "Sum rows relative to their cell's centre: noise then follows the size of cells."
    )

    def prepare(
        self,
        public: Public,  # noqa: ARG002 - cells are settings
        parties: Mapping[str, Schema],
        guarantee: Guarantee,
        *,
        seed: int = 0,  # noqa: ARG002 - nothing is drawn
    ) -> Inquiry[CellEstimates]:
        """Ask one question about all tables."""
        from privada.methods.cells.learner import learn
        from privada.methods.cells.questions.statistics import CellStatistics

        ((owner, schema),) = parties.items()
        names = schema.classes.names if self.by_label else None
        question = CellStatistics(
            tables=make_tables(self.centers, self.bins, schema.features),
            n_classes=None if names is None else len(names),
            radius=self.radius,
            recentred=self.recentred,
            width=None if self.radius is None else schema.width,
            guarantee=guarantee,
        )
        question.fits(schema)
        return learn(owner, question, classes=names)

    def forecast(self, inquiry: Inquiry[Any], parties: Mapping[str, Schema]) -> Forecast:
        """How many rows will be counted in a wrong cell."""
        from privada.methods.cells.learner import forecast_counts

        (ask,), (schema,) = inquiry.asks, parties.values()
        question: Any = ask.question
        return forecast_counts(question, size=schema.size)

    @classmethod
    def make_estimator(
        cls, inquiry: Inquiry[Any], *, schema: Schema, guarantee: Guarantee
    ) -> Callable[[Any], Any]:
        """Class counts of one table are a classifier; others are none."""
        method: Cells = inquiry.method
        if not method.by_label or (method.bins is not None and len(method.bins) > 1):
            raise InputError(
                "Expected by_label = true, and centers or bins of one feature: class counts make a model."
            )
        return super().make_estimator(inquiry, schema=schema, guarantee=guarantee)


def make_tables(centers: Any, bins: Any, features: Sequence[str]) -> tuple[Partition, ...]:
    """The cells that settings describe, of rows with these features."""
    from privada.methods.cells.questions.partition import NearestCells

    if (centers is None) == (bins is None):
        raise InputError("Expected either centers or bins (not both), which say what the cells are.")
    if bins is None:
        return (NearestCells(centers=_check.matrix(centers=centers)),)
    tables = [make_bins(feature, edges, features) for feature, edges in bins.items()]
    return tuple(sorted(tables, key=lambda table: table.feature))


def make_bins(feature: str | int, edges: Sequence[float], features: Sequence[str]) -> Bins:
    """The bins of one feature, given by its name or its number."""
    from privada.methods.cells.questions.partition import Bins

    names = list(features)
    if feature not in names and feature not in range(len(names)):
        raise InputError(f"Expected bins of {', '.join(names)}, got {feature!r:.80}.")
    index = names.index(feature) if isinstance(feature, str) else int(feature)
    mark = f"{names[index]} is missing"
    try:
        numbers = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"Expected bins of {feature!r:.80} to be a list of numbers.") from None
    return Bins(feature=index, edges=numbers, missing=names.index(mark) if mark in names else None)


__all__ = ["Cells", "make_bins", "make_tables"]
