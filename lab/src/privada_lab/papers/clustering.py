"""NAS and NNA with the scales and the threshold that the paper prints: for reproduction and audit only.

Both are **not private as claimed** (privacy.md, sections 1 (b) and 1b (b)):

* `paper_nna`: the sensitivity of a sum is the largest norm, not the diameter. On [99.5, 100.5], whose
  diameter is 1, noise for ε = 1 gives ε = 50.75. True where 0 lies in the domain.
* `paper_nas`: the sensitivity holds only while the source has at least t rows, with stable
  ties. With fewer, an average of what there is moves by half the diameter, and a sum over t by the norm.

They run only with ``insecure_seed=``, draw continuous noise in idealised arithmetic, and
their results are stamped. Nothing here can be charged to a ledger.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.cells.questions.partition import NearestCells
from privada.privacy.noise import Noise, Rehearsal


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperSource:
    """What a printed algorithm returns: S', and the statistics it was made of.

    Attributes
    ----------
    points : array of shape (points, features)
        S' as printed: not projected anywhere.
    counts, sums : arrays or None
        The noisy counts and sums of NNA for all target points.
    """

    points: FloatArray
    counts: FloatArray | None = None
    sums: FloatArray | None = None
    stamps: ClassVar[tuple[str, ...]] = ("not private as claimed", "rehearsal: not private")

    def __repr__(self) -> str:
        return f"<PaperSource of {len(self.points)} points [{'; '.join(self.stamps)}]>"


def paper_nna(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    gamma: float,
    epsilon: float | None = None,
    rho: float | None = None,
    insecure_seed: int | None = None,
) -> PaperSource:
    """Neighbor Noisy Averages (Alg. 2) as printed: Theorems 5.10 (ε) and 5.12 (ρ), line 6's threshold.

    Laplace noise of scale (√d + 1)/ε on every number and the threshold 1 + ln((√d + 1)/γ)/ε; or
    Gaussian noise of σ = √(2/ρ), for which the paper prints no threshold: its own tail bound,
    1 + √2 σ ln(2 (√d + 1)/γ), is used in the same way.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> S = np.repeat([[0.1, 0.1], [0.4, 0.0]], 500, axis=0)
    >>> paper_nna(S, [[0.0, 0.1], [0.5, 0.0], [-0.5, 0.0]], gamma=0.05, epsilon=3, insecure_seed=0)
    <PaperSource of 2 points [not private as claimed; rehearsal: not private]>
    """
    S, T, noise = _prepared(source, target, insecure_seed, "paper_nna")
    n, d = T.shape
    root = math.sqrt(d) + 1
    if _pure(epsilon, rho):
        assert epsilon is not None
        drawn = _laplace(noise, root / epsilon, (n, d + 1))
        least = 1 + math.log(root / _check.probability(gamma=gamma)) / epsilon
    else:
        assert rho is not None
        sigma = math.sqrt(2 / rho)
        drawn = _gaussian(noise, sigma, (n, d + 1))
        least = 1 + math.sqrt(2) * sigma * math.log(2 * root / _check.probability(gamma=gamma))
    exact = np.zeros((n, d + 1))
    np.add.at(exact, NearestCells(centers=T).assign(S), np.column_stack([np.ones(len(S)), S]))
    table = exact + drawn
    at = table[:, 0] >= least
    return PaperSource(points=table[at, 1:] / table[at, :1], counts=table[:, 0], sums=table[:, 1:])


def paper_nas(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    t: int,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    short: Literal["average", "zero"] = "average",
    insecure_seed: int | None = None,
) -> PaperSource:
    """Noisy Average Set (Alg. 1) as printed: Theorems 5.3 (ε, δ), 5.9 (ε) and 5.11 (ρ).

    Laplace noise of scale n√d/(tε), or √d/(t ε₀) with δ, where n uses at ε₀ compose to (ε, δ) by the
    theorem of advanced composition that the paper quotes (it prints the order alone, √(nd ln 1/δ)/(tε));
    or Gaussian noise of σ = √(n/(2ρ))/t. A source with fewer than t
    rows, which the paper excludes by "t in [m]", is averaged over what there is (``short="average"``) or
    summed and divided by t (``"zero"``).
    """
    S, T, noise = _prepared(source, target, insecure_seed, "paper_nas")
    t = _check.count(t=t)
    n, d = T.shape
    if _pure(epsilon, rho):
        assert epsilon is not None
        each = epsilon / n if delta is None else advanced_share(epsilon, delta, uses=n)
        drawn = _laplace(noise, math.sqrt(d) / (t * each), (n, d))
    else:
        assert rho is not None
        if delta is not None:
            raise InputError("Expected no delta beside rho: Theorem 5.11 has none.")
        drawn = _gaussian(noise, math.sqrt(n / (2 * rho)) / t, (n, d))
    over = t if _check.one_of(("average", "zero"), short=short) == "zero" else max(1, min(t, len(S)))
    return PaperSource(points=_nearest_sums(S, T, t) / over + drawn)


def nas_noise(
    points: int,
    *,
    width: int,
    t: int,
    gamma: float,
    epsilon: float | None = None,
    rho: float | None = None,
) -> float:
    """The term beside Δᵗ(S) in Theorem 5.9 (ε) or 5.11 (ρ) with so many target points.

    >>> round(nas_noise(20, width=2, t=150, gamma=0.05, rho=3), 3)
    0.18
    """
    numbers, t = _check.count(points=points) * _check.count(width=width), _check.count(t=t)
    gamma = _check.probability(gamma=gamma)
    if _pure(epsilon, rho):
        assert epsilon is not None
        return numbers / (t * epsilon) * math.log(numbers / gamma)
    assert rho is not None
    return math.sqrt(numbers / rho) / t * math.log(2 * numbers / gamma)


def advanced_share(epsilon: float, delta: float, *, uses: int) -> float:
    """The largest ε₀ of which so many uses are (ε, δ) by advanced composition, as the paper quotes it.

    >>> round(advanced_share(3.0, 1e-5, uses=100), 4)  # 3/100 by basic composition
    0.0589
    """
    from scipy.optimize import brentq

    epsilon, n = _check.positive(epsilon=epsilon), _check.count(uses=uses)
    slope = math.sqrt(2 * n * math.log(1 / _check.probability(delta=delta)))

    def excess(each: float) -> float:
        return each * slope + n * each * math.tanh(each / 2) - epsilon

    return float(brentq(excess, 0.0, epsilon / slope))


def _nearest_sums(S: FloatArray, T: FloatArray, t: int) -> FloatArray:
    """Sum of the t nearest rows of each target point, or of all if there are fewer."""
    if not len(S):
        return np.zeros_like(T)
    from scipy.spatial import KDTree

    near = KDTree(S).query(T, k=np.arange(1, min(t, len(S)) + 1))[1]
    return np.asarray(S[near].sum(axis=1))


def _prepared(
    source: npt.ArrayLike, target: npt.ArrayLike, insecure_seed: int | None, name: str
) -> tuple[FloatArray, FloatArray, Noise]:
    if insecure_seed is None:
        raise InputError(
            f"{name} is not private as claimed: it runs only with insecure_seed=, on data to be shown."
        )
    T = _check.matrix(target=target)
    S = np.asarray(source, dtype=np.float64).reshape(-1, T.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)  # every result says it
        return S, T, Rehearsal(insecure_seed)


def _pure(epsilon: float | None, rho: float | None) -> bool:
    if (epsilon is None) == (rho is None):
        raise InputError("Expected exactly one of epsilon and rho; there is no default.")
    _check.positive(**({"rho": rho} if epsilon is None else {"epsilon": epsilon}))
    return epsilon is not None


def _laplace(noise: Noise, scale: float, shape: tuple[int, ...]) -> FloatArray:
    """Continuous Laplace noise by its quantiles: idealised arithmetic."""
    centred = noise.uniform(shape) - 0.5
    return np.asarray(-scale * np.sign(centred) * np.log1p(-2 * np.abs(centred)))


def _gaussian(noise: Noise, sigma: float, shape: tuple[int, ...]) -> FloatArray:
    """Continuous Gaussian noise by its quantiles: idealised arithmetic."""
    from scipy.special import ndtri

    return np.asarray(sigma * ndtri(noise.uniform(shape)))


__all__ = ["PaperSource", "advanced_share", "nas_noise", "paper_nas", "paper_nna"]
