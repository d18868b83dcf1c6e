"""Numeric labels of the source from binned, clipped squared errors, or their spread. All post-processing.

Scale labels u and predictions k to [-1, 1]; a squared error is then (k - u)², at most 4. Two constant
hypotheses, k = -1 and k = 1, are enough: their errors differ by 4u for each row, so the difference of two
released sums is a noisy sum of labels over a cell, and nothing is lost to clipping. The rest is as for
classes: a Gaussian process of which sums are known, and a regressor trained on the weighted source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, Partition
from privada.methods.hypotheses.forms import linear
from privada.methods.marginals.learner import public as public_cells
from privada.methods.marginals.learner.classifiers import check_kind, spread_evenly, try_out
from privada.methods.marginals.learner.fitted import RegressionFit, SyntheticNumbers
from privada.methods.marginals.learner.learn import Public, cell_sizes, smooth_cells
from privada.methods.marginals.questions import LabelHistogram, SquaredErrors, plan_name
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

ROUNDS = 2
MIDDLES, SPREADS = 64, 16  # of the grid of normal laws
NARROWEST, WIDEST = 0.02, 0.8  # spreads, of half of the range
# priors, in halves of the range: labels lie around its middle, and a quarter of it is a usual spread
PRIOR_MIDDLE, PRIOR_SPREAD, PRIOR_FACTOR = 0.4, 0.25, 0.6


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
    half = public_cells.split_evenly(guarantee, ROUNDS)
    if cells is None:
        # The noise does not depend on the cells, so any question of this price tells it.
        question = _ask_constant(Bins(feature=0, edges=np.zeros(1)), source.shape[1], (-1.0, 1.0), 0, half)
        noise = math.sqrt(ROUNDS * question.plan.lattice(question.names(0)[1]).variance)
        cells = public_cells.cell_count(size=size, n_source=len(source), noise=noise)
    count = min(_check.count(least=2, cells=cells), len(np.unique(source, axis=0)))
    return RegressionPlan(cells=public_cells.cells(source, count, seed), guarantees=(half, half))


def check_regressor(public: Public, bounds: tuple[float, float]) -> None:
    """Refuse, before anything is asked, bounds that are none, or a regressor that would fail later."""
    low, high = bounds
    if not low < high:
        raise InputError(f"Expected bounds to be (low, high), got {bounds}.")
    if public.classifier is not None:
        check_kind(public.classifier, "regressor", such_as="Ridge()")
        rows = (spread_evenly(public.source) - public.mean) / public.scale
        try_out(public.classifier, "regressor", rows, lambda rank, n: low + (high - low) * rank / n)


def learn_regression(
    owner: str,
    cells: Partition,
    public: Public,
    *,
    bounds: tuple[float, float],
    guarantees: tuple[Guarantee, Guarantee],
) -> Inquiry[RegressionFit]:
    """Ask for the errors of the lowest and of the highest constant over cells, and smooth their difference.

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
    questions = [
        _ask_constant(cells, public.source.shape[1], bounds, number, guarantees[number], salt)
        for number in range(ROUNDS)
    ]

    def asking() -> Learner[RegressionFit]:
        releases = []
        for question in questions:
            releases.append((yield AskOwner(owner, question)))  # noqa: PERF401 - a comprehension cannot yield
        return _fit(questions, tuple(releases), public, bounds)

    return Inquiry(tuple(AskOwner(owner, question) for question in questions), asking)


def _ask_constant(
    cells: Partition,
    width: int,
    bounds: tuple[float, float],
    number: int,
    guarantee: Guarantee,
    salt: str = "",
) -> SquaredErrors:
    """The question how far one end of the bounds is off, by cell."""
    return SquaredErrors(
        tables=(cells,),
        hypothesis=linear(np.zeros((width, 1)), [bounds[number]]),
        largest=(bounds[1] - bounds[0]) ** 2,
        round=number,
        rounds=ROUNDS,
        guarantee=guarantee,
        salt=salt,
    )


def _fit(
    questions: list[SquaredErrors], releases: tuple[Release, ...], public: Public, bounds: tuple[float, float]
) -> RegressionFit:
    """Estimate labels of the source, then train a regressor."""
    only_releases(*releases)
    count, squares = questions[0].names(0)
    spread = [question.plan.lattice(squares).variance for question in questions]
    rows = [question.plan.lattice(count).variance for question in questions]
    groups = questions[0].tables[0].assign(public.source)
    counts = np.asarray((releases[0][count] + releases[1][count]) / 2, dtype=np.float64)
    sizes, ratio = cell_sizes(counts[:, None], groups, sum(rows) / 4)
    # Sums of u: (1 + u)² less (1 - u)² over 4.
    sums = np.asarray(releases[0][squares] - releases[1][squares])[:, None]
    smoothed = smooth_cells(public, groups, sizes, sums, sum(spread))
    low, high = bounds
    scaled = np.clip(smoothed(public.standard)[:, 0], -1, 1)
    labels = low + (high - low) * (1 + scaled) / 2
    weights = ratio[groups] / ratio[groups].mean()
    from sklearn.base import clone
    from sklearn.linear_model import Ridge

    model = Ridge() if public.classifier is None else clone(public.classifier)
    return RegressionFit(
        model=model.fit(public.standard, labels, sample_weight=weights),
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


def label_spread(question: LabelHistogram, release: Release, size: int) -> tuple[float, float]:
    """Middle and spread of numeric labels, from noisy counts over even bins.

    A normal law is fitted to the counts by its posterior mean: the noise is known, and wide priors decide
    where it is larger than everything else. The spread of labels with one sharp peak and long tails would
    be too small, so it is at least the root mean square of the counts, less two of its standard errors.
    """
    from scipy.special import ndtr

    only_releases(release)
    counts = np.asarray(release["counts"], dtype=np.float64)
    noise = math.sqrt(question.plan.lattice("counts").variance)
    edges = question.edges
    half, centre = (edges[-1] - edges[0]) / 2, (edges[-1] + edges[0]) / 2
    middles = centre + half * (2 * np.arange(MIDDLES) + 1 - MIDDLES) / MIDDLES
    spreads = half * np.geomspace(NARROWEST, WIDEST, SPREADS)
    below = ndtr((edges - middles[:, None]) / spreads[:, None, None])
    shares = np.diff(below, axis=2)
    expected = size * shares / shares.sum(axis=2, keepdims=True)
    variance = noise**2 + expected
    fit = -0.5 * ((counts - expected) ** 2 / variance + np.log(variance)).sum(axis=2)
    fit -= 0.5 * ((middles - centre) / half / PRIOR_MIDDLE) ** 2
    fit -= 0.5 * (np.log(spreads / half / PRIOR_SPREAD) / PRIOR_FACTOR)[:, None] ** 2
    weights = np.exp(fit - fit.max())
    weights /= weights.sum()
    # The mean of the spread is taken on a logarithmic scale.
    middle = float((weights @ middles).sum())
    spread = float(math.exp(weights.sum(axis=1) @ np.log(spreads)))
    away = ((edges[1:] + edges[:-1]) / 2 - middle) ** 2
    square = float(counts @ away) / size - 2 * noise * float(np.linalg.norm(away)) / size
    limit = (question.high - question.low) / 2
    return middle, math.sqrt(min(max(square, spread**2), limit**2))


__all__ = ["RegressionPlan", "check_regressor", "default_regression", "label_spread", "learn_regression"]
