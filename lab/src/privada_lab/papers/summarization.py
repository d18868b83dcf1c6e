"""h1, h2 and PrivAuction with the parameters that the paper prints: for reproduction and audit only.

They are **not private as claimed** (privacy.md, section 5 (b)):

* `paper_hash` (h2, multiplicative weights): an iteration costs 3 to 6 times the ε that is composed, so the
  printed totals 1.4 and 0.043 are too small; and at the same true privacy plain Gaussian noise is far better.
* `paper_auction`: rank 1 is always asked and rank 2 is not with probability ``1 - exp(-ε)``: that is a δ,
  in every round, at any ε. Asking a point after it bid τ times repairs nothing.
* the printed bid has sign and factor exchanged (`printed_bid`): maximised as printed it picks points that are
  *unlike* the validation set. `paper_summary` runs the bid that the derivation gives.

They run only with ``insecure_seed=``, draw continuous noise in idealised arithmetic, and
their results are stamped. Nothing here can be charged to a ledger.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError, RehearsalWarning
from privada.privacy.accounting import curves
from privada.privacy.noise import Noise, Rehearsal

STAMPS = ("not private as claimed", "rehearsal: not private")


@dataclass(frozen=True, kw_only=True)
class PrintedParameters:
    """The parameters of the paper's section 4."""

    dimension: int = 140
    gamma: float = 0.1
    first_iterations: int = 1656
    later_iterations: int = 5
    validation_epsilon: float = 0.01
    first_epsilon: float = 0.05
    later_epsilon: float = 0.01  # over the square root of p times later_iterations
    auction_epsilon: float = 0.1
    tau: int = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperSummary:
    """What the printed protocol gathers.

    Attributes
    ----------
    owner, index : arrays of shape (p,)
        Whose point, and which of its rows.
    points_seen : int
        Raw points that the curator has asked for.
    """

    owner: IntArray
    index: IntArray
    points_seen: int
    stamps: ClassVar[tuple[str, ...]] = STAMPS

    def __repr__(self) -> str:
        return f"<PaperSummary of {len(self.index)} points [{'; '.join(self.stamps)}]>"


def paper_features(X: npt.ArrayLike, *, dimension: int, gamma: float, random_state: int) -> FloatArray:
    """h1 as printed: cosines with random shifts, of norm up to √2."""
    rows = _check.matrix(X=X)
    rng = np.random.default_rng(random_state)
    frequencies = rng.normal(size=(dimension, rows.shape[1])) * math.sqrt(2 * gamma)
    shifts = rng.uniform(0, 2 * math.pi, size=dimension)
    return np.asarray(math.sqrt(2 / dimension) * np.cos(rows @ frequencies.T + shifts))


class Tilted:
    """A distribution over the grid [-1, 1]^d in product form: one exponential tilt for each coordinate.

    The weights of Algorithm 2 start uniform and are multiplied by ``exp(s_i x)`` for one coordinate i at a
    time, so they stay a product, and no information passes between coordinates.
    """

    def __init__(self, dimension: int, step: float) -> None:
        self.grid = np.linspace(-1.0, 1.0, round(2 / step) + 1)
        self.tilts = np.zeros(dimension)
        self.means = np.zeros(dimension)

    def tilt(self, coordinate: int, by: float) -> None:
        """Multiply the weights of one coordinate by ``exp(by * s)``."""
        self.tilts[coordinate] += by
        powers = self.tilts[coordinate] * self.grid
        weights = np.exp(powers - powers.max())
        self.means[coordinate] = weights @ self.grid / weights.sum()


def paper_hash(
    features: npt.ArrayLike,
    *,
    epsilon: float,
    iterations: int,
    insecure_seed: int | None = None,
    state: Tilted | None = None,
    noise: Noise | None = None,
) -> FloatArray:
    """h2 (Algorithm 2): a noisy mean of embedded rows by multiplicative weights.

    Parameters
    ----------
    features : array of shape (q, d)
        Rows of `paper_features`.
    epsilon, iterations : float and int
        Of each iteration, and how many.
    insecure_seed : int
        Seed; needed unless ``noise``, itself a rehearsal, is given.
    state : Tilted, optional
        Where to begin, and to end: later epochs start from the last one.

    Returns
    -------
    array of shape (d,)
    """
    source = _rehearsed(insecure_seed, noise, "paper_hash")
    H = _check.matrix(features=features)
    q, d = H.shape
    table = Tilted(d, 1 / d) if state is None else state
    exact = (np.round(np.clip(H * math.sqrt(d / 2), -1, 1) * d) / d).sum(axis=0)
    total = np.zeros(d)
    for _ in range(_check.count(iterations=iterations)):
        gaps = np.abs(q * table.means - exact)
        chosen = int(np.argmax(_check.positive(epsilon=epsilon) * gaps - np.log(-np.log(source.uniform(d)))))
        measured = exact[chosen] + _laplace(source, 1 / epsilon)
        table.tilt(chosen, (measured - q * table.means[chosen]) / (2 * q))
        total += table.means
    return np.asarray(math.sqrt(2 / d) * total / iterations)


def paper_auction(
    bids: npt.ArrayLike, *, epsilon: float, insecure_seed: int | None = None, noise: Noise | None = None
) -> npt.NDArray[np.bool_]:
    """PrivAuction, line 13: whether each owner is asked; rank i with probability ``exp(-ε (i - 1))``."""
    source = _rehearsed(insecure_seed, noise, "paper_auction")
    offered = np.asarray(bids, dtype=np.float64)
    rank = np.empty(len(offered))
    rank[np.argsort(-offered, kind="stable")] = np.arange(len(offered))
    return np.asarray(source.uniform(len(offered)) <= np.exp(-_check.positive(epsilon=epsilon) * rank))


def printed_bid(features: FloatArray, target: FloatArray, broadcast: FloatArray, epoch: int) -> FloatArray:
    """The bid of Algorithm 3, line 6, as printed: ``g_l·h - g~·h l/(l+1)``."""
    return np.asarray(features @ broadcast - features @ target * epoch / (epoch + 1))


def derived_bid(features: FloatArray, target: FloatArray, broadcast: FloatArray, count: int) -> FloatArray:
    """The marginal gain, up to factor and constant: ``g~·h - g_l·h q/(q+1)``."""
    return np.asarray(features @ target - features @ broadcast * count / (count + 1))


@dataclass(eq=False)
class _Market:
    """Who has sent what."""

    features: list[FloatArray]
    sent: list[set[int]] = field(default_factory=list)
    bids: dict[tuple[int, int], int] = field(default_factory=dict)
    pool: list[tuple[int, int]] = field(default_factory=list)


def paper_summary(
    owners: Sequence[FloatArray],
    validation: FloatArray,
    seed_set: FloatArray,
    size: int,
    *,
    parameters: PrintedParameters | None = None,
    insecure_seed: int | None = None,
) -> PaperSummary:
    """Algorithm 3 with the printed parameters, on embedded rows (of `paper_features`)."""
    noise = _rehearsed(insecure_seed, None, "paper_summary")
    given = PrintedParameters() if parameters is None else parameters
    if _check.count(size=size) > sum(len(rows) for rows in owners):
        raise InputError("Expected size to be at most all rows together.")
    target = paper_hash(
        validation, epsilon=given.validation_epsilon, iterations=given.first_iterations, noise=noise
    )
    market = _Market(features=list(owners), sent=[set() for _ in owners])
    state = Tilted(validation.shape[1], 1 / validation.shape[1])
    chosen: list[tuple[int, int]] = []
    for epoch in range(size):
        summary = np.vstack([seed_set, *(owners[k][i : i + 1] for k, i in chosen)])
        first = epoch == 0
        later = given.later_epsilon / math.sqrt(size * given.later_iterations)
        broadcast = paper_hash(
            summary,
            epsilon=given.first_epsilon if first else later,
            iterations=given.first_iterations if first else given.later_iterations,
            state=state,
            noise=noise,
        )
        scores = [derived_bid(rows, target, broadcast, len(summary)) for rows in owners]
        chosen.append(_auctioned(market, scores, given, noise))
    return PaperSummary(
        owner=np.array([k for k, _ in chosen]),
        index=np.array([i for _, i in chosen]),
        points_seen=sum(len(sent) for sent in market.sent),
    )


def _auctioned(
    market: _Market, scores: list[FloatArray], given: PrintedParameters, noise: Noise
) -> tuple[int, int]:
    """One auction: who bids, who is asked, and the best of the pool."""
    best = []
    for k, values in enumerate(scores):
        left = values.copy()
        left[list(market.sent[k])] = -np.inf
        best.append(int(np.argmax(left)) if np.isfinite(left).any() else -1)
    bids = np.array([values[i] if i >= 0 else -np.inf for values, i in zip(scores, best, strict=True)])
    coins = paper_auction(bids, epsilon=given.auction_epsilon, noise=noise)
    for k, i in enumerate(best):
        if i < 0:
            continue
        market.bids[k, i] = market.bids.get((k, i), 0) + 1
        if coins[k] or market.bids[k, i] >= given.tau:
            market.sent[k].add(i)
            market.pool.append((k, i))
    taken = max(market.pool, key=lambda point: scores[point[0]][point[1]])
    market.pool.remove(taken)
    return taken


def printed_total(epsilon: float, iterations: int, delta: float) -> float:
    """What the paper composes: Dwork, Rothblum and Vadhan's bound with ε for each iteration.

    >>> round(printed_total(0.01, 1656, 0.01), 4)
    1.4014
    """
    return math.sqrt(2 * iterations * math.log(1 / delta)) * epsilon + iterations * epsilon * math.expm1(
        epsilon
    )


def true_total(
    epsilon: float, iterations: int, delta: float, *, sum_reach: float, score_reach: float
) -> float:
    """A true bound on the same iterations: bounded range for the choice, exact zCDP of the Laplace noise.

    Parameters
    ----------
    sum_reach, score_reach : float
        How far one unit moves a sum, and a score: 1 and 1 (add/remove, public q), 1 and 2 (add/remove, exact
        q), 2 and 2 (replace-one).

    >>> round(true_total(0.01, 1656, 0.01, sum_reach=2, score_reach=2), 3)
    3.301
    """
    rho = curves.bounded_range_to_zcdp(2 * epsilon * score_reach) + curves.laplace_to_zcdp(
        epsilon * sum_reach
    )
    return curves.zcdp_epsilon(delta, iterations * rho)


def _rehearsed(insecure_seed: int | None, noise: Noise | None, name: str) -> Noise:
    if noise is not None and not noise.private:
        return noise
    if insecure_seed is None:
        raise InputError(
            f"{name} is not private as claimed: it runs only with insecure_seed=, on data to be shown."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)  # every result says it
        return Rehearsal(insecure_seed)


def _laplace(noise: Noise, scale: float) -> float:
    centred = float(noise.uniform(1)[0]) - 0.5
    return -scale * math.copysign(math.log1p(-2 * abs(centred)), centred)


__all__ = [
    "PaperSummary",
    "PrintedParameters",
    "Tilted",
    "derived_bid",
    "paper_auction",
    "paper_features",
    "paper_hash",
    "paper_summary",
    "printed_bid",
    "printed_total",
    "true_total",
]
