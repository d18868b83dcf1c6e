"""Rows: noisy projections of single rows, with randomised labels, whole or in minibatches.

What is released is a row each, so the size is public and add/remove is refused. One row moves

===========  ====================================================  ==========================
relation     its noisy projection (L2)                             its label
===========  ====================================================  ==========================
replace-one  ``2R + g √l``: clipped *after* the projection         randomised response at ε'
attribute    ``Δ w + g √l``: an attribute lies in an interval of   randomised response at ε'
             width Δ, w the largest row norm of P, computed
===========  ====================================================  ==========================

with g the grid step and l the number of components. An attribute is a column, and must be one feature (a
category's move two); what float sums round is part of ``Δ w``, and a centre so far off that they round more
is refused. Rows are drawn in a fresh random order that knows neither rows nor labels (sorting by label is
what breaks the printed guarantee). Rows and labels are one mechanism: their privacy-loss distributions are
composed (privacy.md, section 3 (c)).

Minibatches are sampled secretly, afresh, without ids and in random order, and nothing in the payload tells
which rows were drawn. Under replace-one that amplifies: ``γ δ(log(1 + (e^ε - 1)/γ))``, γ the sampling rate.
**At attribute level it does not**: what an attribute's noise hides is one attribute, the other ones show
whose row it is, and a batch is a sample that shows: ``γ δ(ε)`` at the same ε, and over several batches the
mixture's composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada.exceptions import InputError, RelationError
from privada.methods.transport.questions.features import LARGEST, FeatureMap
from privada.methods.transport.questions.statistics import check_map
from privada.privacy.accounting import accountant
from privada.privacy.bounds import Grid
from privada.privacy.codec import inlined
from privada.privacy.guarantee import ApproxDP, Guarantee, PureDP
from privada.privacy.mechanism import Gaussian, Mechanism, Plan, RandomisedResponse, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Question

FITTING = 2.0**61  # grid steps of a projected row, at most: they are summed with their noise in 64 bits
LARGEST_EPSILON, LARGEST_RHO, LABEL_EPSILONS = 50.0, 1e6, (1e-9, 500.0)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RowRelease(Question):
    """Ask for a noisy projection of every row (DPOT), with its randomised label if wanted (DPDA).

    Parameters
    ----------
    features : FeatureMap
        The public map; at attribute level it may not rescale rows, and rows are not clipped.
    size : int
        Public number of rows.
    n_classes : int, optional
        Release labels too, by randomised response.
    label_epsilon : float, optional
        What of the budget labels get; needed with ``n_classes``.
    batch_size, batches : int
        Minibatches instead of the whole; they need less noise under replace-one, hardly any less at
        attribute level.
    attribute_width : float, optional
        Largest width of an attribute's public interval; needed at attribute level.

    Privacy
    -------
    Unit: one row. Under "replace-one" a whole row is protected; under "attribute" *one attribute of it*, and
    m attributes of one person cost m times as much.

    >>> from privada.privacy import ApproxDP
    >>> q = RowRelease(features=FeatureMap.random(8, 3, seed=1), size=100,
    ...                guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="replace-one"))
    >>> round(q.plan.draws["rows"].scale, 2)      # 7.46 R
    7.46
    """

    features: FeatureMap = field(metadata=inlined(FeatureMap))
    size: int
    n_classes: int | None = None
    label_epsilon: float | None = None
    batch_size: int | None = None
    batches: int = 1
    attribute_width: float | None = None
    kind: ClassVar[str] = "transport.rows"
    answered_by: ClassVar[str] = "privada.methods.transport.owner:answer_rows"

    def validate(self) -> None:
        """Check every public parameter by name."""
        if not isinstance(self.features, FeatureMap):
            raise InputError(f"Expected features to be a FeatureMap, got {type(self.features).__name__}.")
        if isinstance(self.guarantee, PureDP):
            raise InputError("Rows have Gaussian noise: ask for epsilon and delta, or for rho.")
        if self.guarantee.relation is Relation.ADD_REMOVE:
            raise RelationError(
                "Rows are released one each, so their number is public: ask under replace-one."
            )
        if self.guarantee.unit.max_rows != 1:
            raise InputError("Rows are released one each: a person with several rows is refused.")
        _check.count(size=self.size)
        _check.count(batches=self.batches)
        if self.batch_size is None and self.batches != 1:
            raise InputError("Expected batch_size beside batches.")
        if self.batch_size is not None and _check.count(batch_size=self.batch_size) > self.size:
            raise InputError(f"Expected batch_size to be at most {self.size}, got {self.batch_size}.")
        if self.batches * self.drawn * self.features.components > LARGEST:
            raise InputError(f"Expected an answer of at most {LARGEST} numbers.")
        self._check_labels_and_attribute()

    def _check_labels_and_attribute(self) -> None:
        if (self.n_classes is None) != (self.label_epsilon is None):
            raise InputError(
                "Expected n_classes and label_epsilon together: labels have a budget of their own."
            )
        if self.n_classes is not None:
            _check.count(least=2, n_classes=self.n_classes)
            low, high = LABEL_EPSILONS
            if not low <= _check.positive(label_epsilon=self.label_epsilon) <= high:
                raise InputError(
                    f"Expected label_epsilon from {low:g} to {high:g}, got {self.label_epsilon!r}."
                )

        if not self.unclipped:
            if self.attribute_width is not None:
                raise InputError("Expected attribute_width under the relation attribute only.")
            return
        _check.positive(attribute_width=self.attribute_width)
        if self.features.rescale != "none":
            raise InputError(
                f"Expected rescale='none' at attribute level, got {self.features.rescale!r}: "
                "one attribute would move all."
            )

    def fits(self, schema: PublicSchema) -> None:
        """Check width, size, classes and intervals against the owner's schema."""
        check_map(self.features, schema)
        if schema.size is not None and schema.size != self.size:
            raise InputError(f"Expected size to be {schema.size}, got {self.size}.")
        if self.n_classes is not None and self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")
        if self.attribute_width is not None:
            self._fits_attributes(schema, self.attribute_width)

    def _fits_attributes(self, schema: PublicSchema, width: float) -> None:
        """Attributes that are one feature each, no wider than said, on a map that rounds them little."""
        several = [column.name for column in schema.columns if len(column.features()) > 1]
        if several:
            raise InputError(
                f"Expected attributes of one feature each at attribute level; {several[0]!r} becomes several."
            )
        low, high = np.array(schema.box.low), np.array(schema.box.high)
        if (widest := float((high - low).max())) > width * (1 + 1e-12):
            raise InputError(f"Expected attribute_width >= {widest:g}, got {width:g}.")
        farthest = np.maximum(np.abs(low - self.features.centre), np.abs(high - self.features.centre))
        terms = farthest * self.features.row_norms()
        rounded = 2.0**-52 * float(terms @ np.arange(len(terms) + 2, 2, -1))  # twice u a sum that follows
        moved = width * float(self.features.row_norms().max()) * self.rounding
        if rounded > moved or float(terms.sum()) > FITTING * self._grid().step:
            raise InputError(
                "Expected a centre nearer to the attributes' intervals, or wider ones: rounding would "
                "move a projected row by more than its attribute."
            )

    @property
    def unclipped(self) -> bool:
        """Whether rows stay as projected: at attribute level their intervals bound them."""
        return self.guarantee.relation is Relation.ATTRIBUTE

    @property
    def drawn(self) -> int:
        """Rows in one batch."""
        return self.size if self.batch_size is None else self.batch_size

    @property
    def reach(self) -> float:
        """How far one step of the relation moves a projected row, grid slack apart."""
        if not self.unclipped:
            return 2 * self.features.radius
        assert self.attribute_width is not None
        return self.attribute_width * float(self.features.row_norms().max()) * (1 + self.rounding)

    @property
    def rounding(self) -> float:
        """What float sums may add to a move at attribute level; `fits` holds them to it."""
        return max(1e-9, self.features.width**2 * 2.0**-52)

    def names(self, index: int) -> tuple[str, str]:
        """Payload names of a batch's rows and labels."""
        mark = "" if self.batches == 1 else f".{index}"
        return f"rows{mark}", f"labels{mark}"

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        shapes: dict[str, tuple[int, ...]] = {}
        for index in range(self.batches):
            rows, labels = self.names(index)
            shapes[rows] = (self.drawn, self.features.components)
            if self.n_classes is not None:
                shapes[labels] = (self.drawn,)
        return shapes

    def planned(self) -> Plan:
        """Calibrate the noise on rows, given what labels and sampling cost."""
        mu, grid = self._mu(), self._grid()
        far = self.reach + grid.step * math.sqrt(self.features.components)
        noise = Gaussian.calibrated(sensitivity=far, mu=mu, grid=grid)
        draws: dict[str, Mechanism] = {}
        for index in range(self.batches):
            rows, labels = self.names(index)
            draws[rows] = noise
            if self.n_classes is not None and self.label_epsilon is not None:
                draws[labels] = RandomisedResponse(budget=self.label_epsilon, n_classes=self.n_classes)
        event = _event(
            noise.mu,
            self.label_epsilon,
            self.n_classes,
            self.size,
            self.drawn,
            self.batches,
            self.guarantee.relation,
        )
        return Plan(draws=draws, event=event)

    def _mu(self) -> float:
        return _row_mu(
            self.guarantee, self.label_epsilon, self.n_classes, self.size, self.drawn, self.batches
        )

    def _grid(self) -> Grid:
        return Grid.finer_than(self.reach / self._mu() * 2.0**-26 / math.sqrt(self.features.components))


def _event(
    mu: float,
    label_epsilon: float | None,
    n_classes: int | None,
    size: int,
    drawn: int,
    batches: int,
    relation: Relation,
) -> Any:
    """Rows and labels as one mechanism, sampled without replacement if batches are smaller than the whole.

    The sample is secret between data sets that differ in a whole row, and shows between others.
    """
    from dp_accounting import ComposedDpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent

    from privada.privacy.accounting.events import VisiblySampledDpEvent

    event = gaussian_event(mu)
    if label_epsilon is not None and n_classes is not None:
        response = RandomisedResponse(budget=label_epsilon, n_classes=n_classes)
        event = ComposedDpEvent([event, response.event])
    if drawn < size:
        secret = relation is Relation.REPLACE_ONE
        event = (SampledWithoutReplacementDpEvent if secret else VisiblySampledDpEvent)(size, drawn, event)
    return SelfComposedDpEvent(event, batches) if batches > 1 else event


@lru_cache(maxsize=256)
def _row_mu(
    guarantee: Guarantee,
    label_epsilon: float | None,
    n_classes: int | None,
    size: int,
    drawn: int,
    batches: int,
) -> float:
    """Largest μ of the rows' noise that keeps the guarantee beside labels and sampling."""
    if label_epsilon is None and drawn == size:
        return guarantee.gaussian_mu() / math.sqrt(batches)
    most = LARGEST_EPSILON if isinstance(guarantee, ApproxDP) else LARGEST_RHO
    if max(getattr(guarantee, "epsilon", 0.0), getattr(guarantee, "rho", 0.0)) > most:
        raise InputError(
            f"Expected epsilon or rho of at most {most:g} beside labels or batches, whose joint loss takes "
            f"long to add up, got {guarantee}."
        )

    def kept(mu: float) -> bool:
        one, event = (
            _event(mu, label_epsilon, n_classes, size, drawn, many, guarantee.relation)
            for many in (1, batches)
        )
        if not isinstance(guarantee, ApproxDP):
            return accountant.satisfies(event, guarantee)
        if accountant.delta(one, guarantee.epsilon) > guarantee.delta:  # in closed form: spares the rest
            return False
        # a coarser distribution is pessimistic too, and ten times faster
        step = accountant.pld_step(event, guarantee.epsilon)
        return accountant.delta(event, guarantee.epsilon, step=step) <= guarantee.delta

    low = high = guarantee.gaussian_mu() / math.sqrt(batches)
    while kept(high):
        high *= 1.5
    while not kept(low):
        low /= 1.5
        if low < 1e-4 * high:
            raise InputError(
                f"Expected label_epsilon that leaves something of {guarantee} for rows, got {label_epsilon}."
            )
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


__all__ = ["RowRelease"]
