"""What a method expects to gain before anything is spent, with a band.

How hard a label is to predict, nobody knows before asking. Two public facts say a little of it: how many rows
there are for the noise, and whether the public columns move together, as measurements of one thing do. So a
forecast is mostly its band; bands were set by leaving whole tables out (``docs/measurements/tables.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.scaling import PublicScale

CONFIDENCE = 0.8
GUESSED_ROWS = 1000  # where none are announced
HALF_HEARD = 30.0  # rows times μ for each class, at which half of a gain is expected
MOST_DEVIATIONS, MOST_ROWS = 3.0, 2000  # of public rows that are looked at


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The expected error with the private rows, over the error of doing nothing; made of public facts alone.

    Where doing nothing has no error to compare with, the error itself, as a share: ``measure`` says of what.

    Parameters
    ----------
    ratio : float
        Below ``nothing``, something is gained.
    low, high : float
        A band that holds four outcomes of five.
    beside : str, default=""
        What doing nothing is, in words.
    measure : str, default=""
        What the error is, in words, if it is not compared with anything.
    nothing : float, default=1.0
        The error of doing nothing, on the same scale.

    >>> print(Forecast(ratio=0.8, low=0.6, high=1.05, beside="the public model"))
    about 80 % of the error of the public model (60 to 105 % in four cases of five)
    >>> print(Forecast(ratio=0.02, low=0.01, high=0.04, measure="the share of rows in a wrong cell"))
    about 2 % as the share of rows in a wrong cell (1 to 4 % in four cases of five)
    """

    ratio: float
    low: float
    high: float
    beside: str = ""
    measure: str = ""
    nothing: float = 1.0

    def __post_init__(self) -> None:
        for name in ("ratio", "high"):
            _check.positive(**{name: getattr(self, name)})
        if _check.finite(low=self.low) < 0 or not self.low <= self.ratio <= self.high:
            raise InputError(f"Expected low <= ratio <= high, got {self.low}, {self.ratio}, {self.high}.")
        if bool(self.beside) == bool(self.measure):
            raise InputError("Expected beside or measure: what 100 % is, or what the error is.")

    @property
    def worthwhile(self) -> bool:
        """Whether a gain is expected at all; if not, the budget is better kept."""
        return self.ratio < self.nothing

    def __str__(self) -> str:
        what = f"of the error of {self.beside}" if self.beside else f"as {self.measure}"
        low, middle, high = (
            f"{share * 100:.2g}" if share < 0.1 else f"{share * 100:.0f}"
            for share in (self.low, self.ratio, self.high)
        )
        return f"about {middle} % {what} ({low} to {high} % in four cases of five)"

    @property
    def explanation(self) -> str:
        """One sentence on what its numbers are."""
        return f"100 % is the error of {self.beside}." if self.beside else f"The error is {self.measure}."


@dataclass(frozen=True, kw_only=True)
class ClassLine:
    """A line for the logarithm of a classifier's error over that of the most frequent class.

    Parameters
    ----------
    start : float
        Where nothing is heard and columns are unrelated.
    by_rows : float
        What it falls by as rows for the noise grow, at most.
    by_direction : float
        What it falls by where all columns move together.
    below, above : float
        The sides of the band.
    """

    start: float
    by_rows: float
    by_direction: float
    below: float
    above: float

    def expect(self, public: npt.ArrayLike, *, rows: float, beside: str) -> Forecast:
        """From public rows and the private rows for each class, times μ."""
        heard = rows / (rows + HALF_HEARD)
        line = self.start - self.by_rows * heard - self.by_direction * leading_share(public)
        return band_around(line, self.below, self.above, beside)


def say_size(size: int | None) -> tuple[int, str]:
    """The rows to reckon with, and the words for it: those announced, or a round guess.

    >>> say_size(None)
    (1000, 'if there are 1,000 rows; no number is announced')
    """
    if size is None:
        return GUESSED_ROWS, f"if there are {GUESSED_ROWS:,} rows; no number is announced"
    return _check.count(size=size), f"of {size:,} rows"


def band_around(line: float, below: float, above: float, beside: str) -> Forecast:
    """A forecast from logarithms: the middle and the widths of both sides.

    >>> print(band_around(-0.1, 0.3, 0.2, "the public model"))
    about 90 % of the error of the public model (67 to 111 % in four cases of five)
    """
    low, middle, high = (math.exp(line + shift) for shift in (-below, 0.0, above))
    return Forecast(ratio=middle, low=low, high=high, beside=beside)


def leading_share(public: npt.ArrayLike) -> float:
    """Share of the first principal direction of standardised rows: 0 if columns are unrelated, 1 if alike.

    Columns are held to three deviations, and constant ones left out.

    >>> one = np.linspace(0.0, 1.0, 50)
    >>> round(leading_share(np.column_stack([one, -one, 3 * one])), 3)
    1.0
    """
    rows = _check.matrix(public=public)[:MOST_ROWS]
    scale = PublicScale.of(rows)
    inside = np.clip(scale.standardise(rows), -MOST_DEVIATIONS, MOST_DEVIATIONS)[:, scale.varies]
    width = inside.shape[1]
    if width < 2:
        return 0.0
    spread = np.linalg.eigvalsh(inside.T @ inside)
    return max(0.0, float((spread[-1] / spread.sum() - 1 / width) / (1 - 1 / width)))


__all__ = ["CONFIDENCE", "GUESSED_ROWS", "ClassLine", "Forecast", "band_around", "leading_share", "say_size"]
