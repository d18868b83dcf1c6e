"""What noisy sums of errors say of a regressor. All post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privada.exceptions import InputError
from privada.methods.evaluation.learner import intervals
from privada.methods.evaluation.learner.intervals import CONFIDENCE, Estimate
from privada.methods.evaluation.questions.errors import ErrorMoments
from privada.parties.protocol import only_releases
from privada.privacy.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """How well a regressor does at an owner.

    Attributes
    ----------
    question : ErrorMoments
    release : Release
    size : int or None
        The number of rows, where it is public: needed under replace-one.
    confidence : float
        Of each interval by itself.
    """

    question: ErrorMoments
    release: Release
    size: int | None = None
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        only_releases(self.release)
        if self.size is None and not self.question.counts_rows:
            raise InputError("Expected size, which is public under replace-one: rows were not counted.")

    @property
    def guarantee(self) -> Any:
        """What the answer cost."""
        return self.release.guarantee

    def _value(self, name: str) -> float:
        return float(self.release[name][0])

    @property
    def rows(self) -> float:
        """The number of rows: the public one, or an estimate that is at least 1."""
        return float(self.size) if self.size is not None else max(1.0, self._value("rows"))

    @cached_property
    def squared_error(self) -> Estimate:
        """Mean squared error, each held to the public bound."""
        largest, rows = self.question.largest, self.rows
        mean = self._value("errors") / rows
        inside = min(1.0, max(0.0, mean))
        spread = min(0.25, max(0.0, self._value("squares") / rows - inside**2), inside * (1 - inside))
        noise = self._noise("errors")
        if self.size is None:
            noise += inside**2 * self._noise("rows")
        made = intervals.normal(
            mean,
            variance=spread / rows + noise / rows**2,
            low=0.0,
            high=1.0,
            confidence=self.confidence,
        )
        return Estimate(
            value=made.value * largest,
            low=made.low * largest,
            high=made.high * largest,
            confidence=made.confidence,
        )

    def _noise(self, name: str) -> float:
        return self.question.plan.lattice(name).variance

    @property
    def root(self) -> Estimate:
        """Root of the mean squared error, in the label's units."""
        made = self.squared_error
        ends = (math.sqrt(end) for end in (made.value, made.low, made.high))
        value, low, high = ends
        return Estimate(value=value, low=low, high=high, confidence=made.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.release.guarantee),
            "stamps": list(self.release.stamps),
            "squared_error": self.squared_error.to_dict(),
            "root_squared_error": self.root.to_dict(),
            "rows": self.rows,
        }


__all__ = ["Regression"]
