"""What the private rows look like, without their labels: charged counts of public cells, and a mean.

*Proof.* A record's mapped features are summed in one fixed order and scaled into the ball of radius r; its
cell is the nearest public centre's, the first on ties: functions of that record and of public numbers.
Replacing a record takes 1 from one cell and gives 1 to another, or changes nothing: the counts move by at
most √2 in L2. It moves the sum of mapped features, each truncated toward zero on the grid and so of norm at
most r, by at most 2r. For a person's m rows both are m times that. Two Gaussians at μ/√2 each make μ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.release import Question

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Portrait(Question):
    """Ask how many rows are nearest to each public centre, and for the sum of all.

    Parameters
    ----------
    size : int
        Public number n of private rows.
    transform, shift : arrays of shape (features, k) and (k,)
        Public map; distances are measured after it.
    radius : float
        r, to which mapped features are clipped.
    centers : array of shape (cells, k)

    Notes
    -----
    The payload is ``counts``, one for each centre, and ``sums``, of mapped features; both are noised, and
    some counts may be negative.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivities √2 and 2r, times the rows of a
    person. Proof: above. Labels are not looked at.

    >>> from privada.privacy import Approximate
    >>> guarantee = Approximate(epsilon=1, delta=1e-5, relation="replace-one")
    >>> question = Portrait(size=100, transform=np.eye(2), shift=np.zeros(2), centers=np.eye(2),
    ...     radius=1.0, guarantee=guarantee)
    >>> f"{question.noise('counts') / 2:.4f} {question.noise('sums') / 2**1.5:.4f}"   # √2 times 3.7306, each
    '3.7306 3.7306'
    """

    size: int
    transform: FloatArray
    shift: FloatArray
    centers: FloatArray
    radius: float
    kind: ClassVar[str] = "reweighting.portrait"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_portrait"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.replaced(self.guarantee)
        public.gaussian(self.guarantee, "A portrait")
        _check.count(size=self.size)
        _check.positive(radius=self.radius)
        transform = public.matrix(transform=self.transform)
        k = transform.shape[1]
        object.__setattr__(self, "transform", transform)
        object.__setattr__(self, "shift", public.vector(shift=self.shift, length=k))
        object.__setattr__(self, "centers", public.matrix(centers=self.centers, width=k))
        if len(self.centers) < 2:
            raise InputError("Expected centers of two cells or more: one cell holds every row.")
        public.few_numbers(self.size * k, "the mapped rows")

    def fits(self, schema: Any) -> None:
        """Check size and features against the owner's schema."""
        public.declared(self.size, schema, len(self.transform))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"counts": (len(self.centers),), "sums": (self.centers.shape[1],)}

    def planned(self) -> Plan:
        """Counts and sums at half of μ² each."""
        rows, mu = self.guarantee.unit.max_rows, self.guarantee.gaussian_mu() / math.sqrt(2)
        reach = 2 * self.radius * rows
        counts = Gaussian.calibrated(sensitivity=math.sqrt(2) * rows, mu=mu, whole=True)
        sums = Gaussian.calibrated(sensitivity=reach, mu=mu, grid=public.fine_grid(reach, reach / mu))
        return Plan(
            draws={"counts": counts, "sums": sums}, event=gaussian_event(math.hypot(counts.mu, sums.mu))
        )

    def noise(self, name: str) -> float:
        """Standard deviation of the noise on each count or sum."""
        draw = self.plan.draws[name]
        assert isinstance(draw, Gaussian)
        return float(draw.scale)


__all__ = ["Portrait"]
