"""What Theorems 1 and 2 of the paper ask for, as numbers: they show how far practice is from them.

Theorem 1 has the objective monotone and submodular if no two of N points are alike: their kernel must stay
below ``1/(N³ + 3N² + N)``. Theorem 2 promises greedy's factor for sizes that it states; its natural
logarithms are written out here. Neither is a mechanism, so nothing is drawn. That the printed ε of Theorem
2 do not give the privacy that it claims is said in `privada_lab.papers.summarization`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check


@dataclass(frozen=True, kw_only=True)
class SubmodularCondition:
    """Theorem 1 on given points.

    Attributes
    ----------
    points : int
        N.
    largest_kernel : float
        Of two different points.
    allowed_kernel : float
        What the theorem allows.
    needed_gamma : float
        Of the kernel ``exp(-gamma D²)``, for the theorem to hold on these points; infinite if two are equal.
    """

    points: int
    largest_kernel: float
    allowed_kernel: float
    needed_gamma: float

    @property
    def holds(self) -> bool:
        """Whether the theorem speaks of these points."""
        return self.largest_kernel <= self.allowed_kernel


def submodular_condition(X: npt.ArrayLike, *, gamma: float) -> SubmodularCondition:
    """Check the condition of Theorem 1 on points.

    >>> found = submodular_condition([[0.0], [1.0], [5.0]], gamma=0.1)
    >>> found.holds, round(found.largest_kernel, 3), round(found.needed_gamma, 2)
    (False, 0.905, 4.04)
    >>> submodular_condition([[0.0], [1.0], [5.0]], gamma=4.1).holds
    True
    """
    from scipy.spatial import KDTree

    rows, gamma = _check.matrix(X=X), _check.positive(gamma=gamma)
    n = len(rows)
    allowed = 1 / (n**3 + 3 * n**2 + n)
    nearest = float(np.min(KDTree(rows).query(rows, k=2)[0][:, 1])) if n > 1 else math.inf
    needed = math.inf if nearest == 0 else -math.log(allowed) / nearest**2
    return SubmodularCondition(
        points=n,
        largest_kernel=math.exp(-gamma * nearest**2),
        allowed_kernel=allowed,
        needed_gamma=needed,
    )


@dataclass(frozen=True, kw_only=True)
class PrescribedSizes:
    """What Theorem 2 sets and asks for.

    Attributes
    ----------
    dimension, iterations : int
        d of the features, and T of each call of the second hash.
    validation_epsilon : float
        Of each iteration on the validation set.
    first_epsilon, last_epsilon : float
        Of each iteration on the summary, in the first epoch and in epoch p.
    validation_rows, seed_rows : int
        The least sizes of D_v and D_init.
    """

    dimension: int
    iterations: int
    validation_epsilon: float
    first_epsilon: float
    last_epsilon: float
    validation_rows: int
    seed_rows: int


def prescribed_sizes(
    *, epsilon: float, delta: float, size: int, points: int, slack: float = 0.5
) -> PrescribedSizes:
    """Theorem 2's rule for d, T, ε and the sizes of D_v and D_init.

    Parameters
    ----------
    epsilon, delta : float
        What the theorem claims in total; delta is below 1/e.
    size, points : int
        p, at least 2, and N.
    slack : float, default=0.5
        a, the error that the random features may add; below 1.

    Examples
    --------
    >>> rule = prescribed_sizes(epsilon=1.4, delta=0.01, size=400, points=3350)
    >>> rule.dimension, rule.iterations, f"{rule.validation_rows:.1e}", f"{rule.seed_rows:.1e}"
    (20241, 409698081, '1.5e+16', '1.4e+18')
    """
    epsilon, a = _check.positive(epsilon=epsilon), _check.probability(slack=slack)
    p, n = _check.count(least=2, size=size), _check.count(least=2, points=points)
    log_p, log_delta = math.log(p), math.log(1 / _check.probability(delta=delta))
    d = math.ceil(16 * math.log(2 * n) * log_p**2 / a**2)
    iterations = d**2
    validation = epsilon / (16 * iterations)
    first = epsilon / math.sqrt(16 * iterations * log_delta * log_p)
    rows = 44 * math.sqrt(2) * math.sqrt(d) * math.log(d) * log_p**2 / validation
    seeds = 121 * 8 * d**2 * math.log(d) ** 2 * log_delta * log_p**5
    return PrescribedSizes(
        dimension=d,
        iterations=iterations,
        validation_epsilon=validation,
        first_epsilon=first,
        last_epsilon=first / math.sqrt(p),
        validation_rows=math.ceil(rows),
        seed_rows=math.ceil(seeds),
    )


__all__ = ["PrescribedSizes", "SubmodularCondition", "prescribed_sizes", "submodular_condition"]
