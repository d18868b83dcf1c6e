"""What is made of released rows: costs, plans, distances, mapped rows with class weights.

The noise on a row adds ``|Δᵢ|² - 2 <Δᵢ, xⱼ>`` to its squared distances. The first part is the same for all
target points and does not touch the plan, so plans use ``|xⱼ|² - 2 <yᵢ, xⱼ>``; distances add ``|yᵢ|² - l
σ²``, which is unbiased. What is left is that a plan is chosen *for* the noisy cost: the distance comes out
too small. `corrected_distance` removes that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada.methods.transport.coupling import exact
from privada.methods.transport.question_rows import RowRelease
from privada.parties.protocol import only_releases
from privada.privacy.mechanism import RandomisedResponse
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]
EXTRA = (0.0, 0.5, 1.0, 2.0, 3.0)  # noise added on top, in units of the variance that is there
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
        found = []
        for index in range(question.batches):
            rows, labels = question.names(index)
            sigma = float(release.noise[rows]["scale"])
            weights = None
            if question.n_classes is not None:
                response = question.plan.draws[labels]
                assert isinstance(response, RandomisedResponse)
                weights = class_weights(release[labels], response)
            found.append(cls(rows=np.asarray(release[rows]), sigma=sigma, weights=weights))
        return tuple(found)

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
    seen = np.bincount(codes, minlength=response.n_classes) / max(1, len(codes))
    prior = np.maximum(np.linalg.solve(channel.T, seen), 1e-3)
    joint = channel[:, codes].T * (prior / prior.sum())
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def plain_distance(batch: NoisyRows, targets: FloatArray) -> float:
    """Squared-cost Wasserstein distance with the constant bias removed: still too small on average."""
    cost = batch.cost(targets)
    return float(np.sum(exact(cost - cost.min()) * cost))


def corrected_distance(batch: NoisyRows, targets: FloatArray, *, seed: int = 0) -> float:
    """The distance without the bias of choosing a plan for the noise.

    The expected value ``V(t)`` under noise of variance t obeys the heat equation: ``V' = ½ E ΔV``, and
    Stein's identity turns the Laplacian into what the plan gains from the noise. Here V is followed where
    that is free: noise is *added* to the released rows (public randomness), V is measured at a few larger
    variances, and a parabola through them is read at variance 0 (simulation extrapolation, Cook and
    Stefanski 1994). Two plans that nobody chose for the noise bound the answer without bias: the distance is
    at least the squared distance of the means, and at most the mean cost of the independent coupling.
    """
    rng = np.random.default_rng(seed)
    if batch.sigma == 0:
        return plain_distance(batch, targets)
    levels, values = [], []
    for extra in EXTRA:
        for _ in range(REPEATS if extra else 1):
            noisy = batch.rows + batch.sigma * np.sqrt(extra) * rng.normal(size=batch.rows.shape)
            more = NoisyRows(rows=noisy, sigma=batch.sigma * np.sqrt(1 + extra))
            levels.append(1 + extra)
            values.append(plain_distance(more, targets))
    weights = [np.sqrt(REPEATS) if level == 1 else 1.0 for level in levels]
    found = float(np.polyval(np.polyfit(levels, values, 2, w=weights), 0.0))
    most = float(batch.cost(targets).mean())
    return float(min(max(found, _between_means(batch, targets)), max(most, 0.0)))


def _between_means(batch: NoisyRows, targets: FloatArray) -> float:
    """Squared distance of the means, without the bias of the noise."""
    gap = batch.rows.mean(axis=0) - targets.mean(axis=0)
    bias = batch.rows.shape[1] * batch.sigma**2 / len(batch.rows)
    return max(0.0, float(np.sum(gap**2)) - float(bias))


__all__ = ["NoisyRows", "class_weights", "corrected_distance", "plain_distance"]
