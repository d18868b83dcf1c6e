"""One ordered pair of domains, with everything that methods, budgets and runs share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.methods.transport.learner.default import default_map
from privada.methods.transport.questions.features import FeatureMap, rescaled
from privada_lab.baselines.propagation import Propagation
from privada_lab.datasets.adaptation import BENCHMARKS, Domain, pairs

LARGE = 2_000_000  # entries of a coupling


@dataclass(frozen=True, eq=False)
class Side:
    """A domain as baselines see it (roots of features, rows of norm 1), and its public side as a target."""

    domain: Domain

    @cached_property
    def rows(self) -> FloatArray:
        """Publicly rescaled rows."""
        return rescaled(self.domain.X, "root")

    @cached_property
    def features(self) -> FeatureMap:
        """Principal components of a target of histograms or activations."""
        return default_map(self.domain.X, rescale="root")

    @cached_property
    def points(self) -> FloatArray:
        """Its own rows through its map, not clipped."""
        return self.features.spread(self.domain.X)

    @cached_property
    def propagation(self) -> Propagation:
        """The graph over which baselines smooth."""
        return Propagation.of(self.rows)


@dataclass(frozen=True, eq=False)
class Case:
    """A source and a target.

    Rows are mapped row by row by the target's public map once, not in every run: asking about mapped rows
    through the identity is asking about the rows themselves.
    """

    benchmark: str
    source: Side
    target: Side
    n_classes: int

    @property
    def names(self) -> tuple[str, str]:
        """Of the domains."""
        return self.source.domain.name, self.target.domain.name

    @property
    def delta(self) -> float:
        """1/(10 n), n the source's public size."""
        return 1 / (10 * len(self.source.domain.X))

    @property
    def small(self) -> bool:
        """Whether all of the baselines' couplings are made; of large pairs, only the fastest one."""
        return len(self.source.domain.X) * len(self.target.domain.X) <= LARGE

    @cached_property
    def mapped(self) -> FloatArray:
        """The source through the target's map, not clipped."""
        return self.target.features.spread(self.source.domain.X)

    @cached_property
    def inside(self) -> FeatureMap:
        """What is left of the map once rows are projected: the clipping."""
        d = self.target.features.components
        return FeatureMap(projection=np.eye(d), centre=np.zeros(d), radius=self.target.features.radius)

    @property
    def labels(self) -> tuple[IntArray, IntArray]:
        """Of source and target; the target's only score."""
        return self.source.domain.y, self.target.domain.y

    def accuracy(self, codes: npt.NDArray[np.int64]) -> float:
        """Percent of the target's labels that are found."""
        return accuracy(codes, self.labels[1])


def cases(benchmark: str, domains: dict[str, Domain]) -> Iterator[Case]:
    """All ordered pairs, sharing what belongs to one domain."""
    sides = {name: Side(domain) for name, domain in domains.items()}
    n_classes = BENCHMARKS[benchmark].n_classes
    for source, target in pairs(domains):
        yield Case(benchmark, sides[source.name], sides[target.name], n_classes)


def accuracy(found: npt.NDArray[np.int64], truth: npt.NDArray[np.int64]) -> float:
    """Percent of labels that agree."""
    return float(100 * np.mean(found == truth))


@dataclass
class Scores:
    """Accuracies in percent by method and pair, one number a run."""

    found: dict[str, dict[tuple[str, str], list[float]]] = field(default_factory=dict)

    def add(self, method: str, pair: tuple[str, str], *values: float) -> None:
        """Note runs."""
        self.found.setdefault(method, {}).setdefault(pair, []).extend(values)

    def pair(self, method: str, pair: tuple[str, str]) -> float:
        """Mean over runs."""
        return float(np.mean(self.found[method][pair]))

    def mean(self, method: str) -> float:
        """Mean over pairs of means over runs."""
        return float(np.mean([np.mean(values) for values in self.found[method].values()]))

    def error(self, method: str) -> float:
        """Standard error of `mean` over runs; 0 where nothing is random or there is one run."""
        squares = [
            float(np.var(v, ddof=1)) / len(v) if len(v) > 1 else 0.0 for v in self.found[method].values()
        ]
        return math.sqrt(sum(squares)) / len(squares)


__all__ = ["Case", "Scores", "Side", "accuracy", "cases"]
