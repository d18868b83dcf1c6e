"""Class statistics: what is asked, and what it costs.

Of each row the owner takes ``onehot(y) ⊗ (1, z, z zᵀ)`` with z in a ball of radius R, sums over rows, and
adds Gaussian noise σₙ, σᵥ, σₘ to counts, sums and moments (the upper triangle, off-diagonal entries times
√2, so that the packing keeps the Frobenius norm). With ``A = 1/σₙ²``, ``B = R²/σᵥ²``, ``C = R⁴/σₘ²`` one
row moves (privacy.md, section 6.4)

==================================  ================================================================
add/remove                          ``A + B + C``
replace-one, the class changes      ``2 (A + B + C)``
replace-one, the class stays        ``4B`` if ``B >= 2C``, else ``2B + 2C + B²/(2C)``
==================================  ================================================================

in units of μ². Truncation to the grid shrinks every single contribution, so the first two lines hold as they
are; a difference of two contributions in one class grows by at most one grid step a coordinate, which is
added to the third. A person with m rows moves m times as far, and one attribute no farther than a whole
row.

Under replace-one counts at ``A = B``, or ``A = B/2`` beside moments at ``C = B/2``, cost nothing more than
sums alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from privada import _check
from privada.exceptions import InputError
from privada.methods.transport.questions.features import LARGEST, FeatureMap
from privada.privacy.bounds import Grid
from privada.privacy.codec import inlined
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Question


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ClassStatistics(Question):
    """Ask for counts, sums and, if wanted, second moments of every class, in one release.

    Parameters
    ----------
    features : FeatureMap
        The public map of rows.
    n_classes : int
        Number of the schema's classes.
    moments : bool
        Release second moments as well.

    Privacy
    -------
    Gaussian noise, one joint sensitivity for all three (see the module). Every class is noised, also one
    without rows. With a target-independent map one release serves any number of targets.

    >>> from privada.privacy import ZCDP
    >>> q = ClassStatistics(features=FeatureMap.random(8, 3, seed=1), n_classes=2,
    ...                     guarantee=ZCDP(rho=0.5, relation="replace-one"))
    >>> round(q.plan.draws["sums"].scale, 3), round(q.plan.draws["counts"].scale, 3)
    (2.0, 2.0)
    """

    features: FeatureMap = field(metadata=inlined(FeatureMap))
    n_classes: int
    moments: bool = False
    kind: ClassVar[str] = "transport.statistics"
    answered_by: ClassVar[str] = "privada.methods.transport.owner:answer_statistics"

    def validate(self) -> None:
        """Check every public parameter by name."""
        if not isinstance(self.features, FeatureMap):
            raise InputError(f"Expected features to be a FeatureMap, got {type(self.features).__name__}.")
        _check.count(least=2, n_classes=self.n_classes)
        if not isinstance(self.moments, bool):
            raise InputError(f"Expected moments to be True or False, got {self.moments!r}.")
        if isinstance(self.guarantee, PureDP):
            raise InputError("Class statistics have Gaussian noise: ask for epsilon and delta, or for rho.")
        if self.n_classes * (1 + self.features.components + self.triangle) > LARGEST:
            raise InputError(f"Expected an answer of at most {LARGEST} numbers.")

    def fits(self, schema: PublicSchema) -> None:
        """Check width, classes and the reach of the projection against the owner's schema."""
        check_map(self.features, schema)
        if self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")

    @property
    def triangle(self) -> int:
        """Numbers in one class's second moments."""
        d = self.features.components
        return d * (d + 1) // 2 if self.moments else 0

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        q, d = self.n_classes, self.features.components
        moments = {"moments": (q, self.triangle)} if self.moments else {}
        return {"counts": (q,), "sums": (q, d)} | moments

    def planned(self) -> Plan:
        """Calibrate counts, sums and moments so that their joint μ is the budget."""
        mu = self.guarantee.gaussian_mu() / self.guarantee.unit.max_rows
        replaces = self.guarantee.relation is not Relation.ADD_REMOVE
        # A, B and C up to scale: free counts under replace-one; else as privacy.md, section 1 (c)
        if replaces:
            parts = (0.5, 1.0, 0.5) if self.moments else (1.0, 1.0, 0.0)
        else:
            root = math.sqrt(self.features.components)
            parts = (1.0, root, root / 2) if self.moments else (1.0, root, 0.0)
        slack = 1 - 2.0**-20  # what the grid takes
        scale = mu / math.sqrt(joint(*parts, replaces=replaces)) * slack
        plan = self._draws(*(scale * math.sqrt(part) for part in parts))
        return Plan(draws=plan, event=gaussian_event(self._mu(plan, replaces=replaces)))

    def _draws(self, count: float, total: float, moment: float) -> dict[str, Gaussian]:
        """Mechanisms whose single contribution moves them by these μ."""
        rows, radius, d = self.guarantee.unit.max_rows, self.features.radius, self.features.components
        root = math.sqrt(2) if self.guarantee.relation is not Relation.ADD_REMOVE else 1.0
        double = 2.0 if root > 1 else 1.0
        draws: dict[str, Gaussian] = {
            "counts": Gaussian.calibrated(sensitivity=rows * root, mu=count * root * rows, whole=True)
        }
        for name, reach, factor, mu, width in (
            ("sums", radius, double, total, d),
            ("moments", radius**2, root, moment, self.triangle),
        ):
            if width:
                coarsest = 2.0**-20 if root > 1 else math.inf  # of the reach: what is kept back for the slack
                grid = Grid.finer_than(reach * min(2.0**-26 / mu, coarsest) / math.sqrt(width))
                slack = grid.step * math.sqrt(width) if root > 1 else 0.0
                far = factor * reach + slack
                draws[name] = Gaussian.calibrated(
                    sensitivity=rows * far, mu=mu * rows * far / reach, grid=grid
                )
        return draws

    def _mu(self, draws: dict[str, Gaussian], *, replaces: bool) -> float:
        """Joint μ of the calibrated draws, grid slack included."""
        sizes = {"counts": 1.0, "sums": self.features.radius, "moments": self.features.radius**2}
        widths = {"counts": 0, "sums": self.features.components, "moments": self.triangle}
        squared, slack = dict.fromkeys(sizes, 0.0), 0.0
        for name, draw in draws.items():
            unit = draw.mu / draw.sensitivity  # 1/σ after the rounding lemma
            squared[name] = (sizes[name] * unit) ** 2
            slack += (draw.grid.step * unit) ** 2 * widths[name]
        parts = squared["counts"], squared["sums"], squared["moments"]
        if not replaces:
            return self.guarantee.unit.max_rows * math.sqrt(joint(*parts, replaces=False))
        stays = math.sqrt(same_class(*parts[1:])) + math.sqrt(slack)
        return self.guarantee.unit.max_rows * max(math.sqrt(2 * sum(parts)), stays)


def check_map(features: FeatureMap, schema: PublicSchema) -> None:
    """Refuse a map of another width, or one that could overflow within the schema's bounds."""
    if features.width != schema.width:
        raise InputError(f"Expected a map of {schema.width} features, got one of {features.width}.")
    largest = max(float(abs(end)) for side in (schema.box.low, schema.box.high) for end in side)
    steepest = float(abs(features.projection).max()) or 1.0
    if (largest + float(abs(features.centre).max()) + 1) * features.width > 1e150 / max(1.0, steepest):
        raise InputError("Expected bounds and projection of moderate size: their product overflows.")


def joint(count: float, total: float, moment: float, *, replaces: bool) -> float:
    """μ² of one row, from A, B and C."""
    if not replaces:
        return count + total + moment
    return max(2 * (count + total + moment), same_class(total, moment))


def same_class(total: float, moment: float) -> float:
    """μ² of a row that stays in its class, from B and C."""
    if total >= 2 * moment:
        return 4 * total
    return 2 * total + 2 * moment + total**2 / (2 * moment)


__all__ = ["ClassStatistics", "check_map", "joint", "same_class"]
