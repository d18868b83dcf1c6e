"""How Table 1's methods choose their settings: on the target's rows but those of the test, all alike.

A setting is (α, weights of the public rows, penalty). Its model is a ridge regression of the mixture that
gives α to the public rows, so weighted, and 1 - α to the target's. Target-only has α = 0, KMM and DM have
α = 1 and their own weights; CnvxAdap has those of target-only and DM and, with weights of its own, all that
lies between: with a large κ₁ and the radius of that ridge solution, CnvxAdap with those reference weights
*is* it (`cnvx_adap`, ``public=``; a test compares the two). *Its own* weights are the roots of DM's, half-way
to equal ones (DM leaves some rows nearly alone), times one number for all rows of a public domain (a month,
an hour, a batch), the larger the better a regression of that domain alone fits the target's rows: they match
the target's features and its labels, which is what CnvxAdap is about. KMM and DM see the target's features,
not its labels, and no domains.

Training and validation rows are pooled. Five folds, drawn three times, score every setting; the models of all
settings, fitted to all rows, are then averaged with weights ``π exp(-n e/2s)``, e being a setting's squared
error over the folds and s the least of all: the likelihood of the held-out labels under normal errors.
Averaging wavers less than the best of some hundred settings, on which a few rows decide. So CnvxAdap's model
is an average of CnvxAdap solutions. π is uniform over a rival's penalties; CnvxAdap's has a sixth for
target-only, a sixth for DM and two thirds for the rest together, among which α from 0.3 to 0.9 counts ten
times the others; and its model is target-only's where the held-out rows are not ahead of it at all.

Chosen among dozens of rules on 32 targets that no figure scores, two to ten splits each: wind in each other
month, news of each other day, flights of nine other hours, gas batches 1, 2 and 3 and three kinds of
generated drifts. CnvxAdap's error was 0.985, 0.9975, 0.9998, 1.05 (1.24, 1.02 and 0.88, the first two ± 0.09
and 0.02) and 0.999 of the best of target-only's and DM's there, in the mean. Tried there as well and no
better: DM's weights as they are, mixed with equal ones, without the domains, the domains' without them, KMM's
and equal ones; averages of convex combinations of the methods' models; flatter and steeper likelihoods; the
marginal likelihood of the target's labels instead of the held-out one's; settings rehearsed on public
domains; domains about their own means; keeping to target-only unless ahead by half or a whole standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada_lab.baselines.adaptation import KMM, PENALTIES, weights_for_moments
from privada_lab.datasets.domain_pairs import DomainPair
from privada_lab.experiments.reweighting.contenders import with_constant

MIXTURES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
FOLDS, REPEATS = 5, 3
FEWEST = 20  # rows of a domain that is weighed by itself
MIDDLE = (0.3, 0.9)  # mixtures that count ten times the others
DOUBT = 20.0  # by which the domains' likelihoods are flattened: the best of them is not the target
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
        weights = weightings(S, a, T)
        blind = {name: moments(S, a, each) for name, each in weights.items()}
        plain, matched = domains(S, a, pair.groups), domains(S, a, pair.groups, np.sqrt(weights["DM"]))
        mixtures: list[Mixture] = [(0.0, "DM"), (1.0, "KMM"), (1.0, "DM"), *product(MIXTURES, ["own"])]

        def fitted(rows: npt.NDArray[np.bool_]) -> FloatArray:
            near = likely(plain, T[rows], b[rows])
            return solved(blind | {"own": mixed(matched, near)}, moments(T[rows], b[rows]), mixtures)

        losses = np.zeros((len(T), len(mixtures) * len(PENALTIES)))
        for fold in _folds(len(T)):
            for each in range(FOLDS):
                out = fold == each
                losses[out] += (T[out] @ fitted(~out).T - b[out][:, None]) ** 2 / REPEATS
        settings = tuple((*mixture, float(penalty)) for mixture, penalty in product(mixtures, PENALTIES))
        return cls(settings, losses, fitted(np.ones(len(T), dtype=np.bool_)))

    def chosen(self, method: str) -> FloatArray:
        """The averaged model of a method's settings; CnvxAdap's is target-only's unless ahead."""
        weights = self._weights(method)
        if method == "CnvxAdap":
            alone = self._weights("target")
            if float((self.losses @ (alone - weights)).mean()) <= 0:
                weights = alone
        return np.asarray(weights @ self.coefs)

    def _weights(self, method: str) -> FloatArray:
        """Prior times the likelihoods of the held-out labels, over the method's settings; they sum to 1."""
        errors, prior = self.losses.mean(axis=0), self._prior(method)
        gap = np.where(prior > 0, errors - errors[prior > 0].min(), np.inf)
        weights = prior * np.exp(-len(self.losses) * gap / (2 * max(float(errors.min()), 1e-300)))
        return np.asarray(weights / weights.sum())

    def _prior(self, method: str) -> FloatArray:
        """A rival's settings count alike; CnvxAdap's as the module says."""
        names = np.array([_whose(alpha, weighting) for alpha, weighting, _ in self.settings])
        if method != "CnvxAdap":
            return np.asarray(names == method, dtype=np.float64)
        alphas = np.array([alpha for alpha, _, _ in self.settings])
        tenfold = np.where((MIDDLE[0] <= alphas) & (alphas <= MIDDLE[1]), 10.0, 1.0)
        prior = np.zeros(len(names))
        for name, share in (("target", 1 / 6), ("DM", 1 / 6), ("own", 2 / 3)):
            counted = tenfold * (names == name)
            prior += share * counted / max(float(counted.sum()), 1e-300)
        return prior


def _whose(alpha: float, weighting: str) -> str:
    """Whose setting it is."""
    return "target" if alpha == 0 else weighting


def _folds(rows: int) -> list[npt.NDArray[np.int64]]:
    return [np.random.default_rng(1 + draw).permutation(rows) % FOLDS for draw in range(REPEATS)]


def weightings(S: FloatArray, a: FloatArray, T: FloatArray) -> dict[str, FloatArray]:
    """Weights of the public rows that see no label: by KMM (of some of them), by DM."""
    few, matched = np.random.default_rng(0).permutation(len(S))[:MOST_MATCHED], np.zeros(len(S))
    matched[few] = KMM().fit(S[few], a[few], T).sample_weight_
    return {"KMM": matched, "DM": weights_for_moments(S, T.T @ T / len(T))}


@dataclass(frozen=True, eq=False)
class Domain:
    """Rows of one public domain: their share of all weights, and their weighted moments."""

    share: float
    moments: Moments


def domains(
    S: FloatArray, a: FloatArray, groups: npt.NDArray[Any] | None, weights: FloatArray | None = None
) -> list[Domain]:
    """The public domains; without known ones, all rows are one."""
    of = np.zeros(len(S), dtype=np.int64) if groups is None else groups
    each = np.full(len(S), 1 / len(S)) if weights is None else weights / weights.sum()
    names, counts = np.unique(of, return_counts=True)
    large = [name for name, count in zip(names, counts, strict=True) if count >= FEWEST]
    rows = [of == name for name in large] or [np.ones(len(S), dtype=np.bool_)]
    floored = np.maximum(each, 1e-12 / len(S))  # where DM leaves nothing of a domain
    return [Domain(float(floored[at].sum()), moments(S[at], a[at], floored[at])) for at in rows]


def likely(parts: list[Domain], T: FloatArray, b: FloatArray) -> FloatArray:
    """How likely each domain's best ridge regression makes (T, b), flattened by `DOUBT`; 1 at most."""
    errors = []
    for part in parts:
        coefs = solved({"all": part.moments}, part.moments, [(1.0, "all")])
        errors.append(float(((T @ coefs.T - b[:, None]) ** 2).mean(axis=0).min()))
    gap = (np.array(errors) - min(errors)) / max(min(errors), 1e-300)
    return np.asarray(np.exp(-len(T) * gap / (2 * DOUBT)))


def mixed(parts: list[Domain], near: FloatArray) -> Moments:
    """Moments of all domains together, each by its share and by how near it is."""
    weights = near * [part.share for part in parts]
    weights /= weights.sum()
    A, b = zip(*(part.moments for part in parts), strict=True)
    return np.tensordot(weights, np.array(A), 1), np.tensordot(weights, np.array(b), 1)


def solved(public: dict[str, Moments], target: Moments, mixtures: list[Mixture]) -> FloatArray:
    """Ridge solutions of all mixtures and penalties."""
    found = []
    for alpha, weighting in mixtures:
        A, b = (alpha * s + (1 - alpha) * t for s, t in zip(public[weighting], target, strict=True))
        eigen, U = np.linalg.eigh(A)
        turned = U.T @ b
        found += [U @ (turned / (np.maximum(eigen, 0) + penalty)) for penalty in PENALTIES]
    return np.array(found)


__all__ = ["Domain", "Family", "domains", "likely", "mixed", "moments", "solved", "weightings"]
