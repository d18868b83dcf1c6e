"""A number instead of a class: labels of the source from binned, clipped squared errors. All post-processing.

Scale labels u and predictions k to [-1, 1]; a squared error is then (k - u)², at most 4. Two constant
hypotheses, k = -1 and k = 1, are enough: their errors differ by 4u for each row, so the difference of two
released sums is a noisy sum of labels over a cell, and nothing is lost to clipping. What follows is as for
classes: a Gaussian process seen through sums, and a regressor trained on the weighted source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.cells.partition import Partition
from privada.methods.marginals.hypothesis import linear
from privada.methods.marginals.learner import Public, cell_sizes, noise_variance, smooth_cells
from privada.methods.marginals.question_squares import SquaredErrors
from privada.parties.protocol import Ask, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]
ROUNDS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionFit:
    """A regressor learnt through releases.

    Attributes
    ----------
    model : regressor
        Fitted on ``(X - mean) / scale``.
    labels, weights : array
        Of the source: the synthetic target.
    """

    model: Any
    mean: FloatArray
    scale: FloatArray
    labels: FloatArray
    weights: FloatArray
    releases: tuple[Release, ...]

    def predict(self, X: FloatArray) -> FloatArray:
        """Label of each row."""
        return np.asarray(self.model.predict((X - self.mean) / self.scale), dtype=np.float64)


def learn_regression(
    owner: str,
    cells: Partition,
    public: Public,
    *,
    bounds: tuple[float, float],
    guarantees: tuple[Guarantee, Guarantee],
) -> Learner[RegressionFit]:
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
    low, high = bounds
    if not low < high:
        raise InputError(f"Expected bounds to be (low, high), got {bounds}.")
    asked, releases = [], []
    for number, constant in enumerate(bounds):
        question = SquaredErrors(
            tables=(cells,),
            hypothesis=linear(np.zeros((public.source.shape[1], 1)), [constant]),
            largest=(high - low) ** 2,
            round=number,
            rounds=ROUNDS,
            guarantee=guarantees[number],
            salt=f"seed {public.seed}" if public.seed else "",
        )
        asked.append(question)
        releases.append((yield Ask(owner, question)))
    return _fitted(asked, tuple(releases), public, bounds)


def _fitted(
    asked: list[SquaredErrors], releases: tuple[Release, ...], public: Public, bounds: tuple[float, float]
) -> RegressionFit:
    """Labels of the source, then a regressor."""
    only_releases(*releases)
    count, squares = asked[0].names(0)
    spread = [noise_variance(question.plan.draws[squares]) for question in asked]
    rows = [noise_variance(question.plan.draws[count]) for question in asked]
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
        labels=labels,
        weights=weights,
        releases=releases,
    )


def _model(public: Public) -> Any:
    from sklearn.base import clone
    from sklearn.linear_model import Ridge

    return Ridge() if public.classifier is None else clone(public.classifier)


__all__ = ["RegressionFit", "learn_regression"]
