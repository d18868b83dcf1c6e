"""How Table 1's methods choose their settings: on the target's rows but those of the test.

A setting is (α, weights of the public rows, penalty). Its model is a ridge regression of the mixture that
gives α to the public rows, so weighted, and 1 - α to the target's. Target-only has α = 0, KMM and DM have
α = 1 and their own weights; CnvxAdap has those of target-only and DM and, with DM's weights or the domains',
what lies between: with a large κ₁ and the radius of that ridge solution, CnvxAdap with those reference
weights *is* it (`cnvx_adap`, ``public=``; a test compares the two). *Domains'* weights are one number for all
rows of a public domain (a month, an hour, a batch), the larger the better a regression of that domain alone
fits the target's rows: CnvxAdap is about weights of public rows that see labels of both sides. KMM and DM see
the target's features, not its labels, and no domains.

Training and validation rows are pooled. Five folds, drawn three times, score every setting; the models of a
method's settings, fitted to all rows, are then averaged with weights: averaging wavers less than the best of
some hundred settings, on which a few rows decide. A rival's penalties weigh ``exp(-n e/2s)``, e being a
setting's squared error over the folds and s the least of all: the likelihood of the held-out labels under
normal errors. CnvxAdap's settings weigh ``π √p``, p being the *evidence*: the probability of the target's
labels if coefficients are normal about the public solution, with the covariance under which the setting's
ridge solution is their posterior mean (`evidence`); its root, since labels are not normal. The evidence knows
how much the target's rows can say of α, which held-out rows of a hundred settings tell less surely. π has a
sixth for target-only and for DM, a third for mixtures with DM's and with the domains' weights, among which α
from 0.3 to 0.9 counts ten times the others. CnvxAdap's model, an average of CnvxAdap solutions, is
target-only's where the held-out rows are not ahead of it at all. Target-only and DM are printed with
penalties weighed by the evidence too, so that one sees what it does for them.

Chosen among dozens of rules on 31 targets that no figure scores, up to nine splits each, with KMM weighing
700 rows: wind in each other month, news of each other day, flights of nine other hours, gas batches 1 and 9
and three kinds of generated drifts. CnvxAdap's error there was 0.987, 0.997, 0.9996, 1.05 (of 300 rows: ±
0.05) and 0.997 of the best of its rivals', in the mean. Tried there as well and no better: averages of convex
combinations of the methods' models by their likelihood; the held-out likelihood instead of the evidence (0 to
0.002 worse), flatter and steeper ones, both together; mixtures with KMM's or uniform weights; domains about
their own means; keeping to target-only unless ahead by half or a whole standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.baselines.adaptation import KMM, PENALTIES, weights_for_moments
from privada.datasets.domain_pairs import DomainPair
from privada.experiments.reweighting.contenders import with_constant

FloatArray = npt.NDArray[np.float64]
MIXTURES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
FOLDS, REPEATS = 5, 3
FEWEST = 20  # rows of a domain that is weighed by itself
DOUBT = 20.0  # by which the domains' likelihoods are flattened: the best of them is not the target
MIDDLE = (0.3, 0.9)  # mixtures that count ten times the others
TEMPER = 2.0  # by which the evidence is flattened: labels are not normal
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
    evidence : array of shape (settings,)
        Logarithms; that of KMM's is not used.
    """

    settings: tuple[tuple[float, str, float], ...]
    losses: FloatArray
    coefs: FloatArray
    evidence: FloatArray

    @classmethod
    def of(cls, pair: DomainPair) -> Family:
        """Score and fit everything."""
        S, a = with_constant(pair.source.X), np.asarray(pair.source.y, dtype=np.float64)
        T = with_constant(np.vstack([pair.train.X, pair.validation.X]))
        b = np.r_[pair.train.y, pair.validation.y]
        blind = {name: moments(S, a, weights) for name, weights in weightings(S, a, T).items()}
        parts = domains(S, a, pair.groups)
        mixtures: list[Mixture] = [(0.0, "DM"), (1.0, "KMM"), *product(MIXTURES, ("DM", "domains"))]

        def public(rows: npt.NDArray[np.bool_]) -> dict[str, Moments]:
            return blind | {"domains": mixed(parts, near(parts, T[rows], b[rows]))}

        def fitted(rows: npt.NDArray[np.bool_]) -> FloatArray:
            return solved(public(rows), moments(T[rows], b[rows]), mixtures)

        losses = np.zeros((len(T), len(mixtures) * len(PENALTIES)))
        for fold in _folds(len(T)):
            for each in range(FOLDS):
                out = fold == each
                losses[out] += (T[out] @ fitted(~out).T - b[out][:, None]) ** 2 / REPEATS
        settings = tuple((*mixture, float(penalty)) for mixture, penalty in product(mixtures, PENALTIES))
        whole, noise = np.ones(len(T), dtype=np.bool_), max(float(losses.mean(axis=0).min()), 1e-300)
        return cls(settings, losses, fitted(whole), evidence(public(whole), T, b, noise, mixtures))

    def chosen(self, method: str, *, by_evidence: bool = False) -> FloatArray:
        """The averaged model of a method's settings; CnvxAdap's, always by evidence, only if it is ahead."""
        if method != "CnvxAdap":
            return np.asarray(self._weights(method, by_evidence) @ self.coefs)
        weights, alone = self._weights(method, True), self._weights("target", False)
        ahead = float((self.losses @ (alone - weights)).mean()) > 0
        return np.asarray((weights if ahead else alone) @ self.coefs)

    def _weights(self, method: str, by_evidence: bool) -> FloatArray:
        """Prior times likelihoods, over the method's settings; they sum to 1."""
        prior = self._prior(method)
        errors = self.losses.mean(axis=0)
        fits = -len(self.losses) * errors / (2 * max(float(errors.min()), 1e-300))
        if by_evidence:
            fits = self.evidence / TEMPER
        weights = prior * np.exp(np.minimum(fits - fits[prior > 0].max(), 0.0))
        return np.asarray(weights / weights.sum())

    def _prior(self, method: str) -> FloatArray:
        """A rival's settings count alike; CnvxAdap's as the module says."""
        names = np.array([_rival(alpha, weighting) for alpha, weighting, _ in self.settings])
        if method != "CnvxAdap":
            return np.asarray(names == method, dtype=np.float64)
        alphas = np.array([alpha for alpha, _, _ in self.settings])
        middle = (MIDDLE[0] <= alphas) & (alphas <= MIDDLE[1])
        prior = np.zeros(len(names))
        for name, share in (("target", 1 / 6), ("DM", 1 / 6), ("DM mixed", 1 / 3), ("domains mixed", 1 / 3)):
            counted = (names == name) * np.where(middle, 1.0, 0.1)
            prior += share * counted / max(float(counted.sum()), 1e-300)
        return prior


def _rival(alpha: float, weighting: str) -> str:
    """Whose setting it is, or whose weights it mixes."""
    if alpha == 0:
        return "target"
    return weighting if alpha == 1 and weighting in ("KMM", "DM") else f"{weighting} mixed"


def _folds(rows: int) -> list[npt.NDArray[np.int64]]:
    return [np.random.default_rng(1 + draw).permutation(rows) % FOLDS for draw in range(REPEATS)]


def weightings(S: FloatArray, a: FloatArray, T: FloatArray) -> dict[str, FloatArray]:
    """Weights of the public rows that see no label: by KMM (of some of them), by DM."""
    few, matched = np.random.default_rng(0).permutation(len(S))[:MOST_MATCHED], np.zeros(len(S))
    matched[few] = KMM().fit(S[few], a[few], T).sample_weight_
    return {"KMM": matched, "DM": weights_for_moments(S, T.T @ T / len(T))}


def domains(S: FloatArray, a: FloatArray, groups: npt.NDArray[Any] | None) -> list[tuple[int, Moments]]:
    """Rows and moments of each public domain; without known ones, of all rows."""
    of = np.zeros(len(S), dtype=np.int64) if groups is None else groups
    names, counts = np.unique(of, return_counts=True)
    large = [name for name, count in zip(names, counts, strict=True) if count >= FEWEST]
    rows = [of == name for name in large] or [np.ones(len(S), dtype=np.bool_)]
    return [(int(at.sum()), moments(S[at], a[at])) for at in rows]


def near(parts: list[tuple[int, Moments]], T: FloatArray, b: FloatArray) -> FloatArray:
    """Weights of the domains, by rows and by how well their best ridge regression fits (T, b); sum 1."""
    errors = []
    for _, part in parts:
        coefs = solved({"all": part}, part, [(1.0, "all")])
        errors.append(float(((T @ coefs.T - b[:, None]) ** 2).mean(axis=0).min()))
    gap = (np.array(errors) - min(errors)) / max(min(errors), 1e-300)
    weights = np.array([rows for rows, _ in parts]) * np.exp(-len(T) * gap / (2 * DOUBT))
    return np.asarray(weights / weights.sum())


def mixed(parts: list[tuple[int, Moments]], weights: FloatArray) -> Moments:
    """Moments of all domains together."""
    A, b = zip(*(part for _, part in parts), strict=True)
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


def evidence(
    public: dict[str, Moments], T: FloatArray, b: FloatArray, noise: float, mixtures: list[Mixture]
) -> FloatArray:
    """Logarithm of the probability of the target's labels, for all mixtures and penalties.

    The ridge solution of a mixture is the posterior mean of coefficients that are normal about the public
    solution ``m₀`` with precision ``P₀ = n (α A_s + λ)/(1 - α)``, in units of the noise: the labels are then
    normal about ``T m₀`` with covariance ``noise (I + T P₀⁻¹ T')``. At α = 1 nothing is left to learn.
    """
    n, (A, c) = len(T), moments(T, b)
    found = []
    for (alpha, weighting), penalty in product(mixtures, PENALTIES):
        S, s = public[weighting]
        held = alpha * S + penalty * np.eye(len(S))
        start = np.linalg.solve(held, alpha * s)
        left, pull = b - T @ start, n * (c - A @ start)
        fit, room = left @ left, 0.0
        if alpha < 1:
            both = held + (1 - alpha) * A
            fit -= pull @ np.linalg.solve(both, pull) * (1 - alpha) / n
            room = np.linalg.slogdet(both)[1] - np.linalg.slogdet(held)[1]
        found.append(-(fit / noise + room) / 2)
    return np.array(found)


__all__ = ["Family", "domains", "evidence", "mixed", "moments", "near", "solved", "weightings"]
