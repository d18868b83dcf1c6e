"""What transport expects to gain over the source's most frequent class, before anything is spent.

Coefficients and band were fitted on pairs of tables and generated sets that no final figure scores
(``docs/measurements/transport.md``, ``forecasts.md``). How hard a label is to predict nobody knows before,
so the band is wide, and the middle of it says little.
"""

from __future__ import annotations

import warnings

import numpy.typing as npt

from privada import _check
from privada.exceptions import PrivadaWarning
from privada.methods.forecast import ClassLine, Forecast

LINE = ClassLine(start=0.29, by_rows=0.37, by_direction=1.9, below=1.15, above=0.6)
FEWEST_COLUMNS = 8  # the tables had no fewer, so no advice is given there


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

    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(200, 5))
    >>> few, many = (forecast(rows, size=size, n_classes=2, mu=0.3) for size in (100, 5000))
    >>> few.ratio > many.ratio
    True
    """
    rows = _check.count(size=size) * _check.positive(mu=mu) / _check.count(n_classes=n_classes)
    return LINE.expect(target, rows=rows, beside="the source's most frequent class")


def advise(expected: Forecast) -> None:
    """Warn where no gain is expected: the budget is better kept."""
    if not expected.worthwhile:
        warnings.warn(
            f"No gain is expected: {expected}. Consider keeping the budget.", PrivadaWarning, stacklevel=4
        )


__all__ = ["FEWEST_COLUMNS", "advise", "forecast"]
