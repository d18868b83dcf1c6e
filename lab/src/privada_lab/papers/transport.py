"""DPOT and DPDA as the paper prints them (Algorithms 1 and 2): for reproduction and audit only.

Both are **not private as claimed** (privacy.md, section 3 (b)):

* `paper_dpot`: σ is calibrated to one *attribute* of one row moving by 1, and true only there; at record
level the
  paper's ε = 4 is about 39 for unit rows in the worst direction.
* `paper_dpda`: rows are sorted by label, so that one changed label shifts many rows; and Laplace noise of
scale
  1/ε' on class counts is 2ε'-private under replace-one, not ε'.

They run only with ``insecure_seed=``, draw continuous noise in idealised arithmetic, and their results are
stamped. Nothing here can be charged to a ledger. Where the printed pseudo-code cannot work (Δ of k rows, a
cost that is not squared) it is read as privacy.md does: one row of noise for each source row, squared
Euclidean cost.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.transport.learner.coupling import barycentric, exact, l1l2
from privada.privacy.noise import Rehearsal

FORBIDDEN = 1.0  # added to costs of at most 1: never infeasible
STAMPS = ("not private as claimed", "rehearsal: not private")


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperRows:
    """What Algorithm 1 sends and computes: M, the noisy rows, and with a target the plan and the distance."""

    projection: FloatArray
    rows: FloatArray
    sigma: float
    plan: FloatArray | None = None
    distance: float = math.nan
    stamps: ClassVar[tuple[str, ...]] = STAMPS

    def __repr__(self) -> str:
        return f"<PaperRows of {len(self.rows)} rows [{'; '.join(self.stamps)}]>"


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperAdaptation:
    """What Algorithm 2 sends and computes: sorted noisy rows, noisy class counts, mapped rows and labels."""

    rows: FloatArray
    counts: FloatArray
    mapped: FloatArray | None
    labels: npt.NDArray[np.int64]
    stamps: ClassVar[tuple[str, ...]] = STAMPS

    def __repr__(self) -> str:
        return f"<PaperAdaptation of {len(self.rows)} rows [{'; '.join(self.stamps)}]>"


def printed_sigma(w: float, *, epsilon: float, delta: float) -> float:
    """``w √(2 (ln(1/(2δ)) + ε)) / ε``: Theorem 2."""
    return w * math.sqrt(2 * (math.log(1 / (2 * delta)) + epsilon)) / epsilon


def paper_dpot(
    source: npt.ArrayLike,
    target: npt.ArrayLike | None = None,
    *,
    components: int,
    epsilon: float,
    delta: float,
    insecure_seed: int | None = None,
) -> PaperRows:
    """Differentially Private Optimal Transport (Alg. 1) as printed.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> paper_dpot(np.zeros((5, 3)), components=2, epsilon=4, delta=1e-4, insecure_seed=0)
    <PaperRows of 5 rows [not private as claimed; rehearsal: not private]>
    """
    X = _check.matrix(source=source)
    noise = _noise(insecure_seed, "paper_dpot")
    _check.positive(epsilon=epsilon)
    _check.probability(delta=delta)
    M = _normal(noise, (X.shape[1], _check.count(components=components))) / math.sqrt(components)
    sigma = printed_sigma(float(np.linalg.norm(M, axis=1).max()), epsilon=epsilon, delta=delta)
    rows = X @ M + sigma * _normal(noise, (len(X), components))
    if target is None:
        return PaperRows(projection=M, rows=rows, sigma=sigma)
    cost = _cost(rows, _check.matrix(target=target, width=X.shape[1]) @ M, sigma)
    plan = exact(cost - cost.min())
    return PaperRows(projection=M, rows=rows, sigma=sigma, plan=plan, distance=float(np.sum(plan * cost)))


def paper_dpda(
    source: npt.ArrayLike,
    labels: npt.ArrayLike,
    target: npt.ArrayLike | None = None,
    *,
    n_classes: int,
    components: int,
    epsilon: float,
    delta: float,
    label_epsilon: float,
    target_labels: npt.ArrayLike | None = None,
    reg_e: float = 0.01,
    reg_cl: float = 0.1,
    insecure_seed: int | None = None,
) -> PaperAdaptation:
    """Differentially Private Domain Adaptation (Alg. 2) as printed: rows sorted by label, noisy counts.

    Semi-supervised, ``target_labels`` are known codes and -1 where a label is unknown: no mass goes between
    different labels, where a source row's label is what the noisy counts make of it.
    """
    X, y = _check.matrix(source=source), np.asarray(labels, dtype=np.int64)
    order = np.argsort(y, kind="stable")
    sent = paper_dpot(
        X[order], components=components, epsilon=epsilon, delta=delta, insecure_seed=insecure_seed
    )
    noise = _noise(None if insecure_seed is None else insecure_seed + 1_000_003, "paper_dpda")
    centred = noise.uniform((n_classes,)) - 0.5
    laplace = (
        -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / _check.positive(label_epsilon=label_epsilon)
    )
    counts = np.bincount(y, minlength=n_classes) + laplace
    guessed = _from_counts(counts, len(X))
    mapped = None
    if target is not None:
        points = _check.matrix(target=target, width=X.shape[1])
        cost = _cost(sent.rows, points @ sent.projection, sent.sigma)
        cost = (cost - cost.min()) / max(float(np.ptp(cost)), 1e-300)
        if target_labels is not None:
            known = np.asarray(target_labels, dtype=np.int64)
            cost += FORBIDDEN * ((guessed[:, None] != known[None, :]) & (known >= 0)[None, :])
        mapped = barycentric(l1l2(cost, guessed, reg_e=reg_e, reg_cl=reg_cl), points)
    return PaperAdaptation(rows=sent.rows, counts=counts, mapped=mapped, labels=guessed)


def _cost(rows: FloatArray, targets: FloatArray, sigma: float) -> FloatArray:
    """Squared distances minus ``l σ²``."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(rows, targets, "sqeuclidean") - rows.shape[1] * sigma**2)


def _from_counts(counts: FloatArray, n: int) -> npt.NDArray[np.int64]:
    """Labels of sorted rows, by noisy counts."""
    ends = np.cumsum(np.maximum(counts, 0))
    places = (np.arange(n) + 0.5) * (ends[-1] / n if ends[-1] > 0 else 1.0)
    return np.minimum(np.searchsorted(ends, places), len(counts) - 1)


def _noise(insecure_seed: int | None, name: str) -> Rehearsal:
    if insecure_seed is None:
        raise InputError(
            f"{name} is not private as claimed: it runs only with insecure_seed=, on data to be shown."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)  # every result says it
        return Rehearsal(insecure_seed)


def _normal(noise: Rehearsal, shape: tuple[int, ...]) -> FloatArray:
    """Continuous Gaussian noise by its quantiles: idealised arithmetic."""
    from scipy.special import ndtri

    return np.asarray(ndtri(noise.uniform(shape)))


__all__ = ["PaperAdaptation", "PaperRows", "paper_dpda", "paper_dpot", "printed_sigma"]
