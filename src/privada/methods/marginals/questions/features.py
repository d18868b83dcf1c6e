"""Sums of designed features by label: what is asked, and what it costs.

The public map ψ is cosines and sines of public frequencies, clipped per record to
norm 1; released is the sum over records of onehot(y) ⊗ ψ(x). With D features, at
most m rows a unit and a grid step g (privacy.md, section 6.3):

======  ============  ========================================
        add/remove    replace-one
======  ============  ========================================
L1      m √D          m (2 √D + 2 g D)
L2      m             m (2 + g √(2 D))
======  ============  ========================================

Under replace-one the difference of two contributions is at most 2 long (one class)
or √2 (two classes) before truncation, which moves at most 2 D coordinates by a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.cells.questions.maps import check_map
from privada.methods.marginals.questions.outcomes import check_size, replaces
from privada.privacy.bounds import Ball, Grid
from privada.privacy.guarantee import Pure
from privada.privacy.mechanism import Gaussian, KNorm, Laplace, Mechanism, Plan
from privada.privacy.release import Question

FloatArray = npt.NDArray[np.float64]
GRID = Grid(-24)
LARGEST_FREQUENCY = 1e100


def fourier(X: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Cosines and sines of ``X @ frequencies``, clipped to norm 1; a function of each row alone.

    Both are 0 where a product is beyond floats, so every row has features, whatever the frequencies are.
    """
    from privada.methods.marginals.questions.hypotheses import kernels

    return Ball(radius=1.0).clip(kernels.waves(X, frequencies))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeatureSums(Question):
    """Ask for the sum of random Fourier features of each class.

    Parameters
    ----------
    frequencies : array of shape (features, waves)
        Public; D is twice the number of waves.
    n_classes : int
    idealised : bool
        Allow K-norm noise for a pure guarantee: less noise, but drawn in float64
        without a lattice proof. Off unless both sides say so.

    Privacy
    -------
    Discrete Laplace noise for pure guarantees, discrete Gaussian for others; the
    sensitivities are in the module's table.
    """

    frequencies: FloatArray
    n_classes: int = 2
    idealised: bool = False
    kind: ClassVar[str] = "marginals.features"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner.answer:answer_features"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "frequencies", check_map(frequencies=self.frequencies))
        if np.abs(self.frequencies).max() > LARGEST_FREQUENCY:
            raise InputError(f"Expected frequencies within ±{LARGEST_FREQUENCY:g}.")
        _check.count(least=2, n_classes=self.n_classes)
        check_size(self.n_classes * self.dimension)
        if not isinstance(self.idealised, bool):
            raise InputError(f"Expected idealised to be true or false, got {self.idealised!r}.")
        if self.idealised and not isinstance(self.guarantee, Pure):
            raise InputError("Expected idealised=False: K-norm noise is for pure guarantees.")

    @property
    def dimension(self) -> int:
        """D, the number of features of one class."""
        return 2 * int(self.frequencies.shape[1])

    def fits(self, schema: Any) -> None:
        """Check features and classes against the owner's schema."""
        if len(self.frequencies) != schema.width:
            raise InputError(f"Expected frequencies of {schema.width} features, got {len(self.frequencies)}.")
        if self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"sums": (self.n_classes, self.dimension)}

    def planned(self) -> Plan:
        """One draw of all sums."""
        rows, size = self.guarantee.unit.max_rows, self.dimension
        step = GRID.step if replaces(self.guarantee) else 0.0
        twice = 2.0 if replaces(self.guarantee) else 1.0
        draw: Mechanism
        if self.idealised and isinstance(self.guarantee, Pure):
            l2 = rows * (twice + step * math.sqrt(2 * size))
            draw = KNorm(sensitivity=l2, budget=self.guarantee.epsilon)
        elif isinstance(self.guarantee, Pure):
            l1 = rows * (twice * math.sqrt(size) + 2 * step * size)
            draw = Laplace.calibrated(sensitivity=l1, epsilon=self.guarantee.epsilon, grid=GRID)
        else:
            l2 = rows * (twice + step * math.sqrt(2 * size))
            draw = Gaussian.calibrated(sensitivity=l2, mu=self.guarantee.gaussian_mu(), grid=GRID)
        return Plan(draws={"sums": draw})


__all__ = ["GRID", "FeatureSums", "fourier"]
