"""A number instead of a class: labels of the source from binned, clipped squared errors. All post-processing.

Scale labels u and predictions k to [-1, 1]; a squared error is then (k - u)², at most 4. Two constant
hypotheses, k = -1 and k = 1, are enough: their errors differ by 4u for each row, so the difference of two
released sums is a noisy sum of labels over a cell, and nothing is lost to clipping. What follows is as for
classes: a Gaussian process seen through sums, and a regressor trained on the weighted source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, Partition
from privada.methods.hypotheses.forms import linear
from privada.methods.marginals.learner import public as public_cells
from privada.methods.marginals.learner.classifiers.trial import check_kind, evenly, tried
from privada.methods.marginals.learner.default import shared
from privada.methods.marginals.learner.learn import Public, cell_sizes, smooth_cells
from privada.methods.marginals.questions.outcomes import plan_name
from privada.methods.marginals.questions.squares import SquaredErrors
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

ROUNDS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticNumbers:
    """Public rows, weighted and labelled with numbers to stand for the private target.

    Attributes
    ----------
    X : array
        The public source's rows.
    labels : array
        Within the label's public bounds.
    weights : array
        Mean 1.
    guarantees : tuple of str
        What labels and weights cost: they are post-processing of these releases.
    """

    X: FloatArray
    labels: FloatArray
    weights: FloatArray
    guarantees: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionFit:
    """A regressor learnt through releases.

    Attributes
    ----------
    model : regressor
        Fitted on ``(X - mean) / scale``.
    synthetic : SyntheticNumbers
    """

    model: Any
    mean: FloatArray
    scale: FloatArray
    synthetic: SyntheticNumbers
    releases: tuple[Release, ...]

    def predict(self, X: FloatArray) -> FloatArray:
        """Label of each row."""
        return np.asarray(self.model.predict((X - self.mean) / self.scale), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionPlan:
    """Cells, and the price of each of the two rounds."""

    cells: Partition
    guarantees: tuple[Guarantee, Guarantee]


def default_regression(
    source: FloatArray, *, guarantee: Guarantee, size: int, seed: int = 0, cells: int | None = None
) -> RegressionPlan:
    """Two even rounds over cells, as many as labels in [-1, 1] would get classes; from public quantities."""
    public_cells.check_announced(size)
    half = shared(guarantee, ROUNDS)
    priced = _constant(Bins(feature=0, edges=np.zeros(1)), source.shape[1], (-1.0, 1.0), 0, half)
    noise = math.sqrt(ROUNDS * priced.plan.lattice(priced.names(0)[1]).variance)
    wanted = cells
    if wanted is None:
        wanted = public_cells.cell_count(size=size, n_source=len(source), noise=noise)
    count = min(_check.count(least=2, cells=wanted), len(np.unique(source, axis=0)))
    return RegressionPlan(cells=public_cells.cells(source, count, seed), guarantees=(half, half))


def check_regressor(public: Public, bounds: tuple[float, float]) -> None:
    """Refuse, before any asking, bounds that are none, or a regressor that would fail after it."""
    low, high = bounds
    if not low < high:
        raise InputError(f"Expected bounds to be (low, high), got {bounds}.")
    if public.classifier is not None:
        check_kind(public.classifier, "regressor", such_as="Ridge()")
        rows = (evenly(public.source) - public.mean) / public.scale
        tried(public.classifier, "regressor", rows, lambda rank, n: low + (high - low) * rank / n)


def learn_regression(
    owner: str,
    cells: Partition,
    public: Public,
    *,
    bounds: tuple[float, float],
    guarantees: tuple[Guarantee, Guarantee],
) -> Inquiry[RegressionFit]:
    """Hear the errors of the lowest and of the highest constant over cells, and smooth their difference.

    Parameters
    ----------
    cells : Partition
    public : Public
        Its classifier is a regressor with ``sample_weight`` here; ridge regression by default.
    bounds : (low, high)
        Public bounds of the label.
    guarantees : pair of Guarantee
        Price of each of the two rounds.
    """
    check_regressor(public, bounds)
    salt = plan_name([(cells,)], guarantees, public.seed)
    asked = [
        _constant(cells, public.source.shape[1], bounds, number, guarantees[number], salt)
        for number in range(ROUNDS)
    ]

    def asking() -> Learner[RegressionFit]:
        releases = []
        for question in asked:
            releases.append((yield AskOwner(owner, question)))  # noqa: PERF401 - a comprehension cannot yield
        return _fitted(asked, tuple(releases), public, bounds)

    return Inquiry(tuple(AskOwner(owner, question) for question in asked), asking)


def _constant(
    cells: Partition,
    width: int,
    bounds: tuple[float, float],
    number: int,
    guarantee: Guarantee,
    salt: str = "",
) -> SquaredErrors:
    """How far one end of the bounds is off, by cell."""
    return SquaredErrors(
        tables=(cells,),
        hypothesis=linear(np.zeros((width, 1)), [bounds[number]]),
        largest=(bounds[1] - bounds[0]) ** 2,
        round=number,
        rounds=ROUNDS,
        guarantee=guarantee,
        salt=salt,
    )


def _fitted(
    asked: list[SquaredErrors], releases: tuple[Release, ...], public: Public, bounds: tuple[float, float]
) -> RegressionFit:
    """Labels of the source, then a regressor."""
    only_releases(*releases)
    count, squares = asked[0].names(0)
    spread = [question.plan.lattice(squares).variance for question in asked]
    rows = [question.plan.lattice(count).variance for question in asked]
    groups = asked[0].tables[0].assign(public.source)
    counts = np.asarray((releases[0][count] + releases[1][count]) / 2, dtype=np.float64)
    sizes, ratio = cell_sizes(counts[:, None], groups, sum(rows) / 4)
    summed = np.asarray(releases[0][squares] - releases[1][squares])[
        :, None
    ]  # of u: (1 + u)² less (1 - u)² over 4
    smoothed = smooth_cells(public, groups, sizes, summed, sum(spread))
    low, high = bounds
    scaled = np.clip(smoothed(public.standard)[:, 0], -1, 1)
    labels = low + (high - low) * (1 + scaled) / 2
    weights = ratio[groups] / ratio[groups].mean()
    return RegressionFit(
        model=_model(public).fit(public.standard, labels, sample_weight=weights),
        mean=public.mean,
        scale=public.scale,
        synthetic=SyntheticNumbers(
            X=public.source,
            labels=labels,
            weights=weights,
            guarantees=tuple(str(release.guarantee) for release in releases),
        ),
        releases=releases,
    )


def _model(public: Public) -> Any:
    from sklearn.base import clone
    from sklearn.linear_model import Ridge

    return Ridge() if public.classifier is None else clone(public.classifier)


__all__ = [
    "RegressionFit",
    "RegressionPlan",
    "SyntheticNumbers",
    "check_regressor",
    "default_regression",
    "learn_regression",
]
