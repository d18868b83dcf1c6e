"""What transport expects to gain over the source's most frequent class, before anything is spent.

The forecast is a line in public facts: how many directions the standardised target really has, as a share of
its columns (columns that move together usually move with the label, too), private rows times μ for each
class, and the number of classes. Its coefficients and its band were fitted on pairs of tables that no final
figure scores (``docs/measurements/transport.md``). How hard a label is to predict nobody knows beforehand, so
the band is wide.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import PrivadaWarning
from privada.methods.forecast import Forecast
from privada.methods.transport.learner.default import standardised_map

INTERCEPT, DIRECTIONS, ROWS, CLASSES = 0.51, 0.5, -0.05, 0.5  # of log(ratio)
BELOW, ABOVE = -0.77, 0.44  # the band, about log(ratio)
HIGHEST = 0.1  # of log(ratio): no pair was worse than the majority by more at every budget
FEWEST_COLUMNS, USUAL_SHARE = 10, 0.35  # of fewer columns the share says nothing, and the usual one is taken
MOST_ROWS = 1000  # of the target that are looked at


def forecast(target: npt.ArrayLike, *, size: int, n_classes: int, mu: float) -> Forecast:
    """Expected error over that of the noisy majority class, from public facts alone.

    Parameters
    ----------
    target : array of shape (targets, features)
    size : int
        Public number of private rows, of all owners.
    n_classes : int
    mu : float
        Of the guarantee.

    >>> rows = np.random.default_rng(0).normal(size=(200, 5))
    >>> few, many = (forecast(rows, size=size, n_classes=2, mu=0.3) for size in (100, 5000))
    >>> few.ratio > many.ratio
    True
    """
    line = min(
        HIGHEST,
        INTERCEPT
        + DIRECTIONS * math.log(share_of_directions(target))
        + ROWS * math.log(_check.count(size=size) * _check.positive(mu=mu) / n_classes)
        + CLASSES * math.log(n_classes / 2),
    )
    low, middle, high = (math.exp(line + shift) for shift in (BELOW, 0.0, ABOVE))
    return Forecast(ratio=middle, low=low, high=high, beside="the source's most frequent class")


def share_of_directions(target: npt.ArrayLike) -> float:
    """``(Σλ)²/Σλ²`` of the standardised target's covariance, over its columns: 1 where they are unrelated.

    Of fewer than ten columns, or equal rows, the usual share of other tables.

    >>> one = np.linspace(0.0, 1.0, 50)
    >>> round(share_of_directions(np.column_stack([one, -one] * 5)), 3)
    0.1
    """
    rows = _check.matrix(target=target)[:MOST_ROWS]
    if rows.shape[1] < FEWEST_COLUMNS or not np.ptp(rows, axis=0).any():
        return USUAL_SHARE
    values = np.linalg.svd(standardised_map(rows).spread(rows), compute_uv=False) ** 2
    return float(values.sum() ** 2 / np.sum(values**2)) / int(rows.shape[1])


def advise(expected: Forecast) -> None:
    """Warn where no gain is expected: the budget is better kept."""
    if not expected.worthwhile:
        warnings.warn(
            f"No gain is expected: {expected}. Consider keeping the budget.", PrivadaWarning, stacklevel=4
        )


__all__ = ["FEWEST_COLUMNS", "advise", "forecast", "share_of_directions"]
