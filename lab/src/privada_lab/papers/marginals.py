"""I- and C-EXPRIL with the noise that the paper prints: for reproduction and audit only.

**Not private as claimed** (privacy.md, section 2 (b)). The printed oracle adds Laplace noise to the
number of errors of a bin and divides by the exact number of rows:

* The lemma's proof drops a Jacobian: at λ = 66 one bin loses log 2 + 1/132 = 0.7007, not 1/66.
* An empty bin has no ratio: whatever is returned for it tells that it is empty.
* With discrete noise the answers are multiples of 1/N, and N is there to be read.

Everything here runs only with ``insecure_seed=``, draws continuous noise in idealised arithmetic,
and stamps its results. Nothing here can be charged to a ledger.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.cells.questions.partition import Bins, Partition
from privada.methods.hypotheses.forms import Constant, Hypothesis
from privada.methods.marginals.learner.classifiers import of_classifier
from privada.methods.marginals.learner.public import feature_bins
from privada.methods.marginals.learner.rounds import box_least_squares, labels

STAMPS = ("not private as claimed", "rehearsal: not private")


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperFit:
    """What EXPRIL returns: one model for each round, the last being its answer."""

    models: tuple[Any, ...]
    mean: FloatArray
    scale: FloatArray
    stamps: ClassVar[tuple[str, ...]] = STAMPS

    def codes(self, X: FloatArray, *, round: int = -1) -> IntArray:  # noqa: A002 - the paper's word
        """Class of each row by the model of a round."""
        found = self.models[round].predict((X - self.mean) / self.scale)
        return np.asarray(found, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<PaperFit of {len(self.models)} rounds [{'; '.join(self.stamps)}]>"


def true_epsilon(scale: float) -> float:
    """The true ε of one printed ratio with Laplace noise of this scale (its lemma claims 1/scale).

    >>> f"{true_epsilon(66.0):.4f}", f"{1 / 66:.4f}"
    ('0.7007', '0.0152')
    """
    return max(1 / _check.positive(scale=scale), math.log(2) + 1 / (2 * scale))


def paper_error_marginals(
    X: FloatArray,
    y: IntArray,
    *,
    tables: tuple[Partition, ...],
    hypothesis: Hypothesis,
    scale: float,
    insecure_seed: int | None = None,
    empty: float = math.nan,
    discrete: bool = False,
) -> FloatArray:
    """Equation 7: clipped (errors + Laplace(scale)) / rows for every bin; ``empty`` where there is no row.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> from privada.methods.cells import Bins
    >>> paper_error_marginals(np.zeros((1, 1)), np.zeros(1, int), scale=1.0, insecure_seed=0,
    ...     tables=(Bins(feature=0, edges=np.array([1.0])),), hypothesis=Constant(code=1))[1]
    np.float64(nan)
    """
    rng = _rehearsed(insecure_seed)
    wrong = (hypothesis.codes(X) != y).astype(np.float64)
    errors = np.concatenate([_summed(table, X, wrong) for table in tables])
    rows = np.concatenate([_summed(table, X, np.ones(len(X))) for table in tables])
    noise = rng.laplace(scale=_check.positive(scale=scale), size=len(rows))
    noisy = errors + (np.round(noise) if discrete else noise)
    ratio = np.clip(noisy / np.maximum(rows, 1), 0, 1)
    return np.where(rows > 0, ratio, empty)


def paper_marginals(
    X: FloatArray, *, tables: tuple[Partition, ...], scale: float, insecure_seed: int | None = None
) -> FloatArray:
    """The query of the importance step: (rows + Laplace(scale)) / n for every bin, n exact."""
    rng = _rehearsed(insecure_seed)
    rows = np.concatenate([_summed(table, X, np.ones(len(X))) for table in tables])
    return np.asarray((rows + rng.laplace(scale=scale, size=len(rows))) / max(len(X), 1))


def _rehearsed(insecure_seed: int | None) -> np.random.Generator:
    if insecure_seed is None:
        raise InputError("Expected insecure_seed=, a seed: the printed mechanism is not private as claimed.")
    warnings.warn("The printed EXPRIL is not private as claimed.", RehearsalWarning, stacklevel=3)
    return np.random.default_rng(insecure_seed)


def _summed(table: Partition, X: FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(table.assign(X), weights=values, minlength=table.n_cells), np.float64)


def paper_expril(
    X: FloatArray,
    y: IntArray,
    source: FloatArray,
    *,
    epsilon: float,
    rounds: int,
    classifier: Any,
    reweight: bool,
    cumulative: bool = True,
    weighted_bins: bool = False,
    insecure_seed: int | None = None,
) -> PaperFit:
    """Algorithm 1 as printed: λ = d (queries)/ε, bins by the rule n'/(q √2 λ) close to 4.

    The importance step, if made, is one query more; empty bins answer 1/2. With ``weighted_bins`` the bins
    of the error marginals hold as much of the *weighted* source each (the paper's choice for its Problem
    2); without, of the source. It changes nothing where there is no importance step.
    """
    from sklearn.base import clone

    rng = _rehearsed(insecure_seed)
    spread = source.std(axis=0)
    mean, width = source.mean(axis=0), np.where(spread > 0, spread, 1.0)
    scale = source.shape[1] * (_check.count(rounds=rounds) + reweight) / _check.positive(epsilon=epsilon)
    count = int(np.clip(round(len(X) / (4 * math.sqrt(2) * scale)), 2, 50))
    tables = feature_bins(source, count)
    incidence = np.vstack([_one_hot(table, source) for table in tables])
    weights = np.ones(len(source))
    if reweight:
        p = paper_marginals(X, tables=tables, scale=scale, insecure_seed=int(rng.integers(2**31)))
        weights = _weights(incidence, p)
    if weighted_bins:
        tables = balanced_bins(source, weights, count)
        incidence = np.vstack([_one_hot(table, source) for table in tables])
    hypothesis: Hypothesis = Constant(code=1)
    heard: list[tuple[FloatArray, FloatArray]] = []
    models = []
    for _ in range(rounds):
        q = paper_error_marginals(
            X,
            y,
            tables=tables,
            hypothesis=hypothesis,
            scale=scale,
            empty=0.5,
            insecure_seed=int(rng.integers(2**31)),
        )
        heard.append((q, np.asarray(1.0 - 2.0 * hypothesis.codes(source), np.float64)))
        used = heard if cumulative else heard[-1:]
        soft = _labels(incidence, used, weights)
        rows = ((source - mean) / width).astype(np.float32)
        models.append(_trained(clone(classifier), rows, soft, weights))
        hypothesis = of_classifier(models[-1], mean=mean, scale=width)
    return PaperFit(models=tuple(models), mean=mean, scale=width)


def balanced_bins(source: FloatArray, weights: FloatArray, count: int) -> tuple[Bins, ...]:
    """Bins of each feature that hold about as much weight each; public, as sources and weights are.

    >>> balanced_bins(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([3.0, 1.0, 1.0, 1.0]), 2)[0].edges
    array([1.])
    """
    return tuple(
        Bins(feature=j, edges=_weighted_edges(source[:, j], weights, count)) for j in range(source.shape[1])
    )


def _weighted_edges(column: FloatArray, weights: FloatArray, count: int) -> FloatArray:
    order = np.argsort(column, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weights[order])[:-1]])
    wanted = np.arange(1, count) * weights.sum() / count
    inner = np.unique(column[order][np.minimum(np.searchsorted(below, wanted), len(column) - 1)])
    inner = inner[inner > column.min()]
    return inner if len(inner) else np.array([float(column.max())])


def _one_hot(table: Partition, source: FloatArray) -> FloatArray:
    part = np.zeros((table.n_cells, len(source)))
    part[table.assign(source), np.arange(len(source))] = 1
    return part


def _weights(incidence: FloatArray, p: FloatArray, ridge: float = 1.0) -> FloatArray:
    """Equation 2, in units of 1/n."""
    n = incidence.shape[1]
    return box_least_squares(incidence / n, p, centre=1.0, low=0.0, high=np.inf, ridge=ridge / n**2)


def _labels(
    incidence: FloatArray, heard: list[tuple[FloatArray, FloatArray]], weights: FloatArray
) -> FloatArray:
    """Equation 6: the stacked system of the rounds, solved in [0, 1]."""
    share = weights / max(weights.sum(), 1e-12)
    held = incidence @ share
    stacked = np.vstack([incidence] * len(heard))
    signs = np.vstack([np.broadcast_to(sign, incidence.shape) for _, sign in heard])
    observed = np.concatenate([(2 * q - 1) * held for q, _ in heard])
    return labels(stacked, signs, observed, share)


def _trained(model: Any, rows: FloatArray, soft: FloatArray, weights: FloatArray) -> Any:
    from sklearn.dummy import DummyClassifier
    from sklearn.exceptions import ConvergenceWarning

    codes = (soft > 0.5).astype(np.int64)
    if len(np.unique(codes)) < 2:
        return DummyClassifier(strategy="constant", constant=int(codes[0])).fit(rows, codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        floored = np.maximum(weights / max(float(weights.mean()), 1e-12), 1e-3)  # a batch needs some weight
        return model.fit(rows, codes, sample_weight=floored)


__all__ = [
    "PaperFit",
    "balanced_bins",
    "paper_error_marginals",
    "paper_expril",
    "paper_marginals",
    "true_epsilon",
]
