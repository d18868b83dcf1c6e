"""What is made of released rows: costs, plans, distances, mapped rows with class weights.

The noise on a row adds ``|Δᵢ|² - 2 <Δᵢ, xⱼ>`` to its squared distances. The first part is the same for all
target points and does not touch the plan, so plans use ``|xⱼ|² - 2 <yᵢ, xⱼ>``; distances add ``|yᵢ|² - l
σ²``, which is unbiased. What is left is that a plan is chosen *for* the noisy cost: the distance comes out
too small. `corrected_distance` removes that where the release can carry it.

*Shrinkage.* The correction is unbiased to second order but has the whole variance of the noise, and where
noise exceeds the distance manyfold it would only add error. With the gap of the means as floor,
``X = V - floor`` has a known variance τ², and the answer is ``floor + X (1 - τ²/X²)₊`` (the positive-part
rule of Stein's kind; Breiman's garrote in one dimension), the floor likewise above 0. Its mean squared error
about θ = E X is at most 1.5 τ² (largest near θ = 2.4 τ; X itself has τ²), tends to τ² as θ grows, and at
θ = 0 it is 0.17 τ²; it never leaves the interval between floor and X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.transport.learner.coupling import exact
from privada.methods.transport.questions.rows import RowRelease
from privada.parties.protocol import only_releases
from privada.privacy.mechanism import RandomisedResponse
from privada.privacy.release import Release

EXTRA = (0.5, 1.0, 2.0, 3.0)  # noise added on top, in units of the variance that is there
REPEATS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyRows:
    """One batch of released rows.

    Attributes
    ----------
    rows : array of shape (rows, components)
    sigma : float
        Standard deviation of the noise on every number.
    weights : array of shape (rows, classes) or None
        Posterior class weights, given the randomised labels and their channel.
    """

    rows: FloatArray
    sigma: float
    weights: FloatArray | None = None

    @classmethod
    def of(cls, question: RowRelease, release: Release) -> tuple[NoisyRows, ...]:
        """Read all batches of a release."""
        only_releases(release)
        noisy_batches = []
        for index in range(question.batches):
            rows, labels = question.names(index)
            sigma = float(release.noise[rows]["scale"])
            weights = None
            if question.n_classes is not None:
                response = question.plan.find(labels, RandomisedResponse)
                weights = class_weights(release[labels], response)
            noisy_batches.append(cls(rows=np.asarray(release[rows]), sigma=sigma, weights=weights))
        return tuple(noisy_batches)

    def cost(self, targets: FloatArray) -> FloatArray:
        """Squared distances without their bias: ``E = |zᵢ - xⱼ|²``."""
        own = np.sum(self.rows**2, axis=1) - self.rows.shape[1] * self.sigma**2
        return np.asarray(self.plan_cost(targets) + own[:, None])

    def plan_cost(self, targets: FloatArray) -> FloatArray:
        """The part of the cost that decides the plan."""
        return np.asarray(np.sum(targets**2, axis=1)[None, :] - 2 * self.rows @ targets.T)


def class_weights(codes: npt.NDArray[np.int64], response: RandomisedResponse) -> FloatArray:
    """Posterior of the true class: channel times the prior that the responses themselves show."""
    channel = response.channel()
    shares = np.bincount(codes, minlength=response.n_classes) / max(1, len(codes))
    prior = np.maximum(np.linalg.solve(channel.T, shares), 1e-3)
    joint = channel[:, codes].T * (prior / prior.sum())
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def plain_distance(batch: NoisyRows, targets: FloatArray) -> float:
    """Squared-cost Wasserstein distance with the constant bias removed: still too small on average."""
    return distance_and_plan(batch, targets)[0]


def distance_and_plan(batch: NoisyRows, targets: FloatArray) -> tuple[float, FloatArray]:
    """The same, with the plan that attains it."""
    cost = batch.cost(targets)
    plan = exact(cost - cost.min())
    return float(np.sum(plan * cost)), plan


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A distance by extrapolation, what bounds it, and how far noise may move each.

    Attributes
    ----------
    value, variance : float
        Extrapolated to no noise.
    floor, floor_variance : float
        Squared distance of the means: no plan was chosen for it, and it is far less noisy.
    most : float
        Mean cost of the independent coupling.
    """

    value: float
    variance: float
    floor: float
    floor_variance: float
    most: float

    @classmethod
    def mean(cls, parts: Sequence[Estimate]) -> Estimate:
        """Of independent batches."""
        n = len(parts)
        return cls(
            value=sum(part.value for part in parts) / n,
            variance=sum(part.variance for part in parts) / n**2,
            floor=sum(part.floor for part in parts) / n,
            floor_variance=sum(part.floor_variance for part in parts) / n**2,
            most=sum(part.most for part in parts) / n,
        )

    def shrunk(self) -> float:
        """The answer: between floor and value, by what the noise leaves of their difference."""
        floor = _garrote(self.floor, self.floor_variance)
        above = _garrote(self.value - floor, self.variance + self.floor_variance)
        return min(floor + above, max(self.most, floor))


def _garrote(x: float, variance: float) -> float:
    return x - variance / x if x > 0 and x * x > variance else 0.0


def corrected_distance(batch: NoisyRows, targets: FloatArray, *, seed: int = 0) -> float:
    """The distance without the bias of choosing a plan for the noise, shrunk by its own variance."""
    return estimate(batch, targets, seed=seed).shrunk()


def estimate(batch: NoisyRows, targets: FloatArray, *, seed: int = 0) -> Estimate:
    """Extrapolate the distance to no noise.

    The expected value ``V(t)`` under noise of variance t obeys the heat equation: ``V' = ½ E ΔV``, and
    Stein's identity turns the Laplacian into what the plan gains from the noise. Here V is followed where
    that is free: noise is *added* to the released rows (public randomness), V is measured at a few larger
    variances, and a parabola through them is read at variance 0 (simulation extrapolation, Cook and
    Stefanski 1994). Two plans that nobody chose for the noise bound the answer without bias: the distance is
    at least the squared distance of the means, and at most the mean cost of the independent coupling.
    """
    if batch.sigma == 0:
        true = plain_distance(batch, targets)
        return Estimate(value=true, variance=0.0, floor=true, floor_variance=0.0, most=true)
    # V at no noise, and the variance that the added noise gives it
    rng, levels = np.random.default_rng(seed), [1.0, *np.repeat(1 + np.array(EXTRA), REPEATS)]
    values = []
    for level in levels:
        noisy = batch.rows + batch.sigma * np.sqrt(level - 1) * rng.normal(size=batch.rows.shape)
        values.append(plain_distance(NoisyRows(rows=noisy, sigma=batch.sigma * np.sqrt(level)), targets))
    weights = np.where(np.array(levels) == 1, np.sqrt(REPEATS), 1.0)
    at_zero = np.linalg.pinv(np.vander(levels, 3) * weights[:, None])[2] * weights
    spread = np.repeat(np.array(values[1:]).reshape(len(EXTRA), REPEATS).var(axis=1, ddof=1), REPEATS)
    value, drawn = float(at_zero @ values), float(at_zero[1:] ** 2 @ spread)
    (n, width), noise = batch.rows.shape, float(batch.sigma) ** 2
    gap = batch.rows.mean(axis=0) - targets.mean(axis=0)
    floor = float(np.sum(gap**2)) - width * noise / n
    return Estimate(
        value=value,
        variance=(2 * width * noise**2 + 4 * noise * max(value, 0.0)) / n + drawn,
        floor=floor,
        floor_variance=2 * width * (noise / n) ** 2 + 4 * noise / n * max(floor, 0.0),
        most=float(batch.cost(targets).mean()),
    )


__all__ = [
    "Estimate",
    "NoisyRows",
    "class_weights",
    "corrected_distance",
    "distance_and_plan",
    "estimate",
    "plain_distance",
]
