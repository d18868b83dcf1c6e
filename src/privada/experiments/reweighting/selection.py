"""How Table 1's methods choose their settings: on the target's rows but those of the test, all alike.

A setting is (α, weights of the public rows, penalty). Its model is a ridge regression of the mixture that
gives α to the public rows, so weighted, and 1 - α to the target's. Target-only has α = 0, KMM and DM have
α = 1 and their own weights; CnvxAdap has all of them and what lies between: with a large κ₁ and the radius of
that ridge solution, CnvxAdap with those reference weights *is* it (`cnvx_adap`, ``public=``; a test compares
the two).

Training and validation rows are pooled. Five folds score every setting; the models of all settings, fitted to
all rows, are then averaged with weights ``exp(-n e/2s)``, e being a setting's squared error over the folds
and s the least of all: the likelihood of the held-out labels under normal errors. Averaging wavers less than
the best of some hundred settings, on which a few rows decide. KMM and DM see the target's features, not its
labels. CnvxAdap, whose settings contain target-only's, keeps to those unless the held-out rows are ahead by a
standard error: where the source cannot help, as on gas, each setting beside target-only costs a little.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from privada.baselines.adaptation import KMM, PENALTIES, weights_for_moments
from privada.datasets.domain_pairs import DomainPair
from privada.experiments.reweighting.contenders import with_constant

FloatArray = npt.NDArray[np.float64]
MIXTURES = (0.02, 0.1, 0.3, 0.7, 0.9, 1.0)
WEIGHTINGS = ("uniform", "KMM", "DM")
FOLDS = 5
MOST_MATCHED = 2000  # public rows that KMM weighs: its kernel matrix is quadratic in them
Moments = tuple[FloatArray, FloatArray]
Mixture = tuple[float, str]


def moments(X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> Moments:
    """Mean of ``xx'`` and ``xy``; weights need not sum to 1."""
    q = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    weighted = X * q[:, None]
    return weighted.T @ X, weighted.T @ y


@dataclass(frozen=True, eq=False)
class Family:
    """All settings of all methods on one split: errors over the folds, and models of all rows.

    Attributes
    ----------
    settings : tuple of (alpha, weighting, penalty)
    losses : array of shape (rows, settings)
        Squared errors of held-out rows.
    coefs : array of shape (settings, features)
    """

    settings: tuple[tuple[float, str, float], ...]
    losses: FloatArray
    coefs: FloatArray

    @classmethod
    def of(cls, pair: DomainPair) -> Family:
        """Score and fit everything."""
        S, a = with_constant(pair.source.X), np.asarray(pair.source.y, dtype=np.float64)
        T = with_constant(np.vstack([pair.train.X, pair.validation.X]))
        b = np.r_[pair.train.y, pair.validation.y]
        public = {name: moments(S, a, weights) for name, weights in weightings(S, a, T).items()}
        mixtures: list[Mixture] = [(0.0, "uniform"), *product(MIXTURES, WEIGHTINGS)]
        fold = np.random.default_rng(1).permutation(len(T)) % FOLDS
        losses = np.zeros((len(T), len(mixtures) * len(PENALTIES)))
        for each in range(FOLDS):
            out = fold == each
            coefs = solved(public, moments(T[~out], b[~out]), mixtures)
            losses[out] = (T[out] @ coefs.T - b[out][:, None]) ** 2
        settings = tuple((*mixture, float(penalty)) for mixture, penalty in product(mixtures, PENALTIES))
        return cls(settings, losses, solved(public, moments(T, b), mixtures))

    def chosen(self, method: str) -> FloatArray:
        """The averaged model of a method's settings; CnvxAdap keeps to target-only's unless clearly ahead."""
        weights = self._weights(method)
        if method == "CnvxAdap":
            alone = self._weights("target")
            gain = self.losses @ (alone - weights)
            if gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)):
                weights = alone
        return np.asarray(weights @ self.coefs)

    def _weights(self, method: str) -> FloatArray:
        """Likelihoods of the held-out labels, over the method's settings; they sum to 1."""
        errors = self.losses.mean(axis=0)
        at = np.array([_belongs(method, alpha, weighting) for alpha, weighting, _ in self.settings])
        gap = np.where(at, errors - errors[at].min(), np.inf)
        weights = np.exp(-len(self.losses) * gap / (2 * max(float(errors.min()), 1e-300)))
        return np.asarray(weights / weights.sum())


def _belongs(method: str, alpha: float, weighting: str) -> bool:
    if method == "CnvxAdap":
        return True
    return alpha == 0 if method == "target" else alpha == 1 and weighting == method


def weightings(S: FloatArray, a: FloatArray, T: FloatArray) -> dict[str, FloatArray]:
    """Weights of the public rows: uniform, by KMM (of some of them), by DM."""
    few, matched = np.random.default_rng(0).permutation(len(S))[:MOST_MATCHED], np.zeros(len(S))
    matched[few] = KMM().fit(S[few], a[few], T).sample_weight_
    moved = weights_for_moments(S, T.T @ T / len(T))
    return {"uniform": np.ones(len(S)), "KMM": matched, "DM": moved}


def solved(public: dict[str, Moments], target: Moments, mixtures: list[Mixture]) -> FloatArray:
    """Ridge solutions of all mixtures and penalties."""
    found = []
    for alpha, weighting in mixtures:
        A, b = (alpha * s + (1 - alpha) * t for s, t in zip(public[weighting], target, strict=True))
        eigen, U = np.linalg.eigh(A)
        turned = U.T @ b
        found += [U @ (turned / (np.maximum(eigen, 0) + penalty)) for penalty in PENALTIES]
    return np.array(found)


__all__ = ["Family", "moments", "solved", "weightings"]
