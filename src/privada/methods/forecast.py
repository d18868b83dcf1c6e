"""What a method expects to gain before anything is spent, with a band."""

from __future__ import annotations

from dataclasses import dataclass

from privada import _check
from privada.exceptions import InputError

CONFIDENCE = 0.8


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The expected error with the private rows, over the error of doing nothing; made of public facts alone.

    Parameters
    ----------
    ratio : float
        Below 1, something is gained.
    low, high : float
        A band that holds four outcomes of five.
    beside : str
        What doing nothing is, in words.

    >>> print(Forecast(ratio=0.8, low=0.6, high=1.05, beside="the public model"))
    about 80 % of the error of the public model (60 to 105 % in four cases of five)
    """

    ratio: float
    low: float
    high: float
    beside: str

    def __post_init__(self) -> None:
        for name in ("ratio", "low", "high"):
            _check.positive(**{name: getattr(self, name)})
        if not self.low <= self.ratio <= self.high:
            raise InputError(f"Expected low <= ratio <= high, got {self.low}, {self.ratio}, {self.high}.")

    @property
    def worthwhile(self) -> bool:
        """Whether a gain is expected at all; if not, the budget is better kept."""
        return self.ratio < 1

    def __str__(self) -> str:
        return (
            f"about {self.ratio:.0%} of the error of {self.beside} ".replace("%", " %")
            + f"({self.low * 100:.0f} to {self.high * 100:.0f} % in four cases of five)"
        )


__all__ = ["CONFIDENCE", "Forecast"]
