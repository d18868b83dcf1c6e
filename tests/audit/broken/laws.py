"""Noise that is not what the plan says."""

from dataclasses import dataclass

import numpy as np

from privada.privacy import ApproxDP, Gaussian, Laplace, PureDP, RandomisedResponse
from privada.privacy.accounting import curves

from .exhibit import FINE, ONE, exhibit, features, labels, quarters

MU = curves.gaussian_mu(epsilon=1.0, delta=1e-5)
QUARTER = PureDP(epsilon=0.25, relation="add/remove")
APPROXIMATE = ApproxDP(epsilon=1.0, delta=1e-5, relation="add/remove")


class ScaledGaussian(Gaussian):
    def _integers(self, shape, noise):
        return noise.discrete_gaussian(0.8 * self.steps, shape)


class ScaledLaplace(Laplace):
    def _integers(self, shape, noise):
        return noise.discrete_laplace(0.8 * self.steps, shape)


class SeededLaplace(Laplace):
    def _integers(self, shape, noise):
        return np.rint(np.random.default_rng(7).laplace(scale=self.steps, size=shape)).astype(np.int64)


class SparseLaplace(Laplace):
    def draw(self, exact, noise):
        return np.where(exact == 0, 0.0, super().draw(exact, noise))


class OneForAll(Laplace):
    def _integers(self, shape, noise):
        return np.broadcast_to(noise.discrete_laplace(self.steps, 1), shape).copy()


class KeepsMore(RandomisedResponse):
    def draw(self, exact, noise):
        codes = np.asarray(exact, dtype=np.int64)
        return noise.randomised_response(codes, n_classes=self.n_classes, epsilon=1.5 * self.budget)


@dataclass(frozen=True, kw_only=True)
class Remembering(Laplace):
    memory: list

    def _integers(self, shape, noise):
        if not self.memory:
            self.memory.append(noise.discrete_laplace(self.steps, shape))
            return self.memory[0]
        return self.memory.pop()


@exhibit(draws={"sum": ScaledGaussian(sensitivity=1, scale=1.01 / MU, grid=FINE)}, guarantee=APPROXIMATE)
def gaussian_scaled_by_four_fifths(question, rows, draw):
    """The Gaussian's standard deviation is 0.8 times the declared one."""
    return {"sum": draw("sum", FINE.truncate(features(rows)).sum(axis=0))}


@exhibit(draws={"counts": ScaledLaplace(sensitivity=1, scale=1.0)})
def laplace_scaled_by_four_fifths(question, rows, draw):
    """The Laplace noise has 0.8 times the declared scale."""
    return {"counts": draw("counts", quarters(rows))}


@exhibit(
    draws={"counts": SeededLaplace(sensitivity=1, scale=4.0)},
    guarantee=PureDP(epsilon=0.25, relation="add/remove"),
)
def seeded_noise(question, rows, draw):
    """Every answer has the same noise; whoever knows one exact answer knows all."""
    return {"counts": draw("counts", quarters(rows))}


@exhibit(draws={"counts": SparseLaplace(sensitivity=1, scale=1.0)})
def no_noise_on_empty_cells(question, rows, draw):
    """The mechanism itself leaves zeros alone."""
    return {"counts": draw("counts", quarters(rows))}


@exhibit(draws={"counts": OneForAll(sensitivity=1, scale=1.0)})
def one_noise_for_all_cells(question, rows, draw):
    """One draw is added to every cell: differences of cells are exact."""
    return {"counts": draw("counts", quarters(rows))}


_MEMORY: list = []


@exhibit(
    draws={name: Remembering(sensitivity=1, scale=2.0, memory=_MEMORY) for name in ("a", "b")}, guarantee=ONE
)
def noise_used_twice(question, rows, draw):
    """Two draws of one answer share their noise: their difference is exact."""
    exact = quarters(rows)
    return {"a": draw("a", exact), "b": draw("b", exact[::-1].copy())}


@exhibit(
    draws={"labels": KeepsMore(budget=1.0, n_classes=2)},
    guarantee=PureDP(epsilon=1.0, relation="replace-one"),
)
def response_that_keeps_more(question, rows, draw):
    """Randomised response keeps labels as at 1.5 times its budget."""
    return {"labels": draw("labels", np.sort(labels(rows)))}


@exhibit(draws={"counts": Laplace(sensitivity=1, scale=1.0)})
def noise_without_a_mechanism(question, rows, draw):
    """A second histogram has noise of the answerer's own, which nobody planned or paid for."""
    own = quarters(rows) + np.random.default_rng().laplace(scale=1.0, size=4)
    return {"counts": draw("counts", quarters(rows)), "more": own}
