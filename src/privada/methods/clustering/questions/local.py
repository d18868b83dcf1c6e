"""Local means: counts, sums and second moments in shells around public points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.clustering.questions.calibration import few_numbers, frozen, sized
from privada.methods.clustering.questions.local_pricing import LocalPricing
from privada.privacy.mechanism import Plan
from privada.privacy.release import PublicSchema, Question

MOMENTS = ("none", "trace", "full", "pooled")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LocalMeans(Question):
    """Ask for counts, sums and second moments of source rows in shells around public points.

    Parameters
    ----------
    cells : array of shape (cells, features)
        Public coreset points. A row belongs to the nearest one, the first on ties, and there to
        the first shell that holds it.
    shells : array of shape (shells,)
        Public radii, increasing. A row beyond the last one contributes nothing.
    domain : float
        Radius of the public ball around 0 that holds source and target; sanitised points are
        projected onto it.
    moments : "none", "trace", "full" or "pooled"
        Second moments: none, the sum of squared norms, the whole triangle, or one triangle for
        each shell over all cells together, which so many rows share that its noise hardly counts.
    count_share, moment_share : float, optional
        Shares of the budget (epsilon, or μ²); sums get the rest. By default those of `shares`.

    Notes
    -----
    Payload, in units of the shell's radius: ``counts`` (cells, shells), ``sums`` (cells, shells,
    features), ``moments`` (cells, shells), (cells, shells, triangle) or, pooled,
    (shells, triangle).

    Privacy
    -------
    Unit and relation are the guarantee's. A row touches one (cell, shell) with three parts of norm
    at most 1, enforced by clipping; all are noised, empty or not. The noise on a
    sum is proportional to the shell's radius, not the domain's. Pure guarantees use discrete
    Laplace noise, others discrete Gaussian. Sensitivities: the table of ``_local_pricing``. Proof:
    privacy.md, section 6.1.

    >>> from privada.privacy import PureDP
    >>> question = LocalMeans(cells=np.zeros((1, 4)), shells=np.array([0.1, 0.2]), domain=0.5,
    ...                       guarantee=PureDP(epsilon=1, relation="add/remove"))
    >>> [f"{question.plan.draws[name].epsilon:.3f}" for name in ("counts", "sums")]
    ['0.284', '0.716']
    """

    cells: FloatArray
    shells: FloatArray
    domain: float
    moments: str = "none"
    count_share: float | None = None
    moment_share: float | None = None
    kind: ClassVar[str] = "clustering.local"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner.answer:answer_local"

    @property
    def needs_label(self) -> bool:
        """Never: rows count whatever their label."""
        return False

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "cells", frozen(cells=self.cells))
        object.__setattr__(self, "shells", _increasing(self.shells))
        sized(domain=self.domain)
        _check.one_of(MOMENTS, moments=self.moments)
        for name in ("count_share", "moment_share"):
            if getattr(self, name) is not None:
                _check.probability(**{name: getattr(self, name)})
        if self.moment_share is not None and self.moments == "none":
            raise InputError("Expected moment_share to be absent beside moments='none'.")
        if (self.count_share or 0.0) + (self.moment_share or 0.0) >= 1:
            raise InputError("Expected count_share and moment_share to leave something for the sums.")
        few_numbers(self.n_shells * (1 + self.width) + math.prod(self.moments_shape), "the answer")

    def fits(self, schema: PublicSchema) -> None:
        """Check the features against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected cells of {schema.width} features, got {self.width}.")

    @property
    def width(self) -> int:
        """Number of features d."""
        return int(self.cells.shape[1])

    @cached_property
    def partition(self) -> NearestCells:
        """The cells that rows belong to."""
        return NearestCells(centers=self.cells)

    @property
    def n_shells(self) -> int:
        """Number of (cell, shell) pairs, over which thresholds take their union."""
        return len(self.cells) * len(self.shells)

    @property
    def moments_shape(self) -> tuple[int, ...]:
        """Shape of the second moments in the payload."""
        shape: tuple[int, ...] = (len(self.cells), len(self.shells))
        return {
            "none": (0,),
            "trace": shape,
            "full": (*shape, self.triangle),
            "pooled": (len(self.shells), self.triangle),
        }[self.moments]

    @property
    def pricing(self) -> LocalPricing:
        """Sensitivities, shares and calibration."""
        return LocalPricing(
            width=self.width,
            moments=self.moments,
            guarantee=self.guarantee,
            count_share=self.count_share,
            moment_share=self.moment_share,
        )

    @property
    def triangle(self) -> int:
        """Second moments of one shell: none, one, or d(d+1)/2 numbers."""
        return self.pricing.triangle

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of the budget for counts, sums and moments."""
        return self.pricing.shares

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        shape = (len(self.cells), len(self.shells))
        moments = {} if self.moments == "none" else {"moments": self.moments_shape}
        return {"counts": shape, "sums": (*shape, self.width)} | moments

    def planned(self) -> Plan:
        """Split the budget over counts, sums and moments, and calibrate each draw."""
        return self.pricing.plan()


def _increasing(shells: npt.ArrayLike) -> FloatArray:
    radii = np.array(shells, dtype=np.float64)
    positive = radii.ndim == 1 and radii.size > 0 and bool(np.isfinite(radii).all()) and radii[0] > 0
    if not positive or np.any(np.diff(radii) <= 0):
        raise InputError("Expected shells to be positive radii, finite and strictly increasing.")
    sized(shells=float(radii[0]))
    sized(shells=float(radii[-1]))
    radii.flags.writeable = False
    return radii


__all__ = ["LocalMeans"]
