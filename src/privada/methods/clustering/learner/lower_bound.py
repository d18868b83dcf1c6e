"""What no private method can avoid: lower bounds on the error, over the worst of all data sets.

Observations 4.1, 4.2 and 5.8 of the paper, with what their proofs really give. All are public: they
depend on the guarantee, the ball, and how many points there are.

*Separated points.* All three proofs put points into the ball of radius r, at least s apart. The paper takes
up to (2√d)ᵈ of them at s = 1/2 and r = 1. That many do not exist from d = 7 on: balls of radius
1/4 around them would fit into one of radius 5/4, so there are at most 5ᵈ. `separation` says what is certain:
evenly spaced on a line, a simplex, a cross-polytope, and ``r/s`` to the power d in general, because a set
that no point can be added to covers the ball.

*Observation 4.2.* T holds 2N copies of x₁ and N of each of x₂ … x_{k+1}, the source copies of x_{k+2}, and
perhaps x₁. With x₁ the best choice is x₂ … x_{k+1} and every other one costs N s/n more; without x₁ this
choice costs 2N D/n, where D >= s is the distance of x₁ to its nearest, and another one at most N D/n if x₁
is the point for which D is largest (which the paper leaves out). A method that answers so with probability
p beside x₁ errs with probability 1 - p there and with at least ``e^-ε (p - δ)`` without: at least ``(1 -
δ)/(1 + e^ε)`` in one of both, never below the paper's ``(1 - 2δ)/(2 e^ε)``.

*Observation 5.8.* The paper's example has a Δᵗ(S) above s unless all points are equally far apart.
Instead: x₁ … x_{k+1} are 2s apart, and t source rows lie at distance s from each; they are no nearer to
any other. Then Δᵗ(S) is s, or a little less beside x₁, and the argument above gives N s/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privada import _check
from privada.privacy.guarantee import Guarantee

_EPSILONS = np.linspace(0.0, 20.0, 201)


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """For some target and source every private method pays this much more than the best choice.

    Attributes
    ----------
    error : float
        Cost beyond that of the best choice; 0 if nothing is known.
    probability : float
        At least so often, over the method's own randomness.
    """

    error: float
    probability: float


def separation(points: int, *, radius: float, width: int) -> float:
    """How far apart so many points of a ball can certainly be.

    >>> separation(3, radius=1.0, width=1), separation(4, radius=1.0, width=2)
    (1.0, 1.4142135623730951)
    >>> separation(2**8, radius=1.0, width=8)
    0.5
    """
    count, d = _check.count(points=points), _check.count(width=width)
    r = _check.positive(radius=radius)
    if count == 1:
        return 2 * r
    found = [r * float(count ** (-1 / d)), 2 * r / (count - 1)]
    if count <= 2 * d:
        found.append(math.sqrt(2) * r)
    if count <= d + 1:
        found.append(r * math.sqrt(2 * count / (count - 1)))
    return max(found)


def cost_sensitivity(*, n_centers: int, n_targets: int, radius: float, width: int) -> float:
    """Observation 4.1: for some target and choice one source row moves the cost by at least this.

    It does not shrink as the target grows, unlike the 2/n of clustering private points.

    >>> cost_sensitivity(n_centers=10, n_targets=1000, radius=1.0, width=8)
    1.4000714267493641
    """
    k, n = _check.count(least=0, n_centers=n_centers), _check.count(n_targets=n_targets)
    return max(0, n - k) / n * separation(k + 1, radius=radius, width=width)


def lower_bound(
    guarantee: Guarantee, *, n_centers: int, n_targets: int, radius: float, width: int
) -> LowerBound:
    """Observation 4.2: what a method with this guarantee errs by, for some target and source.

    Parameters
    ----------
    guarantee : Guarantee
        For the source.
    n_centers, n_targets : int
        How many points are chosen, and of how many.
    radius, width : float, int
        Of the ball that holds all points, and its dimension.

    Examples
    --------
    >>> from privada.privacy import PureDP
    >>> found = lower_bound(
    ...     PureDP(epsilon=0.1, relation="add/remove"), n_centers=6, n_targets=800, radius=1.0, width=8
    ... )
    >>> round(found.error, 3), round(found.probability, 3)
    (0.189, 0.475)
    """
    k = _check.count(least=0, n_centers=n_centers)
    apart = separation(k + 2, radius=radius, width=width)
    return LowerBound(error=_share(k, n_targets) * apart, probability=error_probability(guarantee))


def lower_bound_beside_radius(
    guarantee: Guarantee, mean_radius: float, *, n_centers: int, n_targets: int, radius: float, width: int
) -> LowerBound:
    """Observation 5.8: the same among sources of Δᵗ(S) at most ``mean_radius``, at any t.

    >>> from privada.privacy import PureDP
    >>> found = lower_bound_beside_radius(
    ...     PureDP(epsilon=1, relation="add/remove"), 0.08, n_centers=6, n_targets=800, radius=1.0, width=8
    ... )
    >>> found.error, round(found.probability, 3)
    (0.01, 0.269)
    """
    k = _check.count(least=0, n_centers=n_centers)
    apart = separation(k + 1, radius=radius, width=width) / 2
    apart = min(_check.non_negative(mean_radius=mean_radius), apart, radius)
    return LowerBound(error=_share(k, n_targets) * apart, probability=error_probability(guarantee))


def error_probability(guarantee: Guarantee) -> float:
    """``(1 - δ)/(1 + e^ε)``, the largest over all pairs that a guarantee implies.

    >>> from privada.privacy import ApproxDP
    >>> round(error_probability(ApproxDP(epsilon=0.1, delta=0.1, relation="add/remove")), 3)
    0.428
    """
    return max((1 - guarantee.delta_at(float(each))) / (1 + math.exp(each)) for each in _EPSILONS)


def _share(n_centers: int, n_targets: int) -> float:
    """Share of the target at one of k + 1 places, one of which holds at least two shares."""
    n = _check.count(n_targets=n_targets)
    return n // (n_centers + 2) / n if n_centers else 0.0


__all__ = [
    "LowerBound",
    "cost_sensitivity",
    "error_probability",
    "lower_bound",
    "lower_bound_beside_radius",
    "separation",
]
