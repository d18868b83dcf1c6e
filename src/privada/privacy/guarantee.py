"""Guarantees are values: frozen, keyword-only, partially ordered, and never without their relation.

>>> from privada.privacy import ApproxDP, PureDP, ZCDP
>>> print(PureDP(epsilon=1, relation="add/remove"))
ε = 1 (pure), add/remove one row
>>> PureDP(epsilon=1, relation="add/remove") <= ZCDP(rho=0.5, relation="add/remove")
True
>>> ZCDP(rho=0.5, relation="add/remove") <= PureDP(epsilon=50, relation="add/remove")
False
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from privada import _check
from privada._notebook import describe
from privada.exceptions import InputError, RelationError
from privada.privacy.accounting import curves
from privada.privacy.relation import ROW, Relation, Unit

LOOSE = {"epsilon": 5.0, "rho": 0.5}  # users are warned above these
_ZCDP_MARGIN = 1 - 1e-9  # of ρ that stands for (ε, δ): more than rounding in a ledger can be off by


@dataclass(frozen=True, kw_only=True)
class Guarantee(ABC):
    """A bound on what a release reveals about one unit, under one neighbouring relation.

    ``a <= b`` means that a is at least as strong as b: whatever satisfies ``a`` satisfies ``b``. The order
    is partial: a zCDP guarantee never implies a pure one, and unrelated relations do not compare.
    """

    relation: Relation
    unit: Unit = ROW
    kind: ClassVar[str]
    formula: ClassVar[str]  # a format of the numbers, without relation and unit

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", Relation.parse(self.relation))
        for name in self.parameter_names():
            check = _check.probability if name == "delta" else _check.positive
            object.__setattr__(self, name, check(**{name: getattr(self, name)}))

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Names of the numbers that state the guarantee, such as ``("epsilon", "delta")``."""
        return tuple(f.name for f in fields(cls) if f.name not in ("relation", "unit"))

    @abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """Smallest delta that this guarantee implies at ``epsilon``."""

    @abstractmethod
    def zcdp_constant(self) -> float:
        """Smallest ρ for which this guarantee implies ρ-zCDP (infinite if none)."""

    def gaussian_mu(self) -> float:
        """Largest μ of Gaussian noise that keeps this guarantee; a pure one allows none."""
        raise InputError(f"A {self.kind} guarantee allows no Gaussian noise.")

    @abstractmethod
    def part(self, share: float) -> Self:
        """The guarantee of a share of this budget: ε, ρ or, for Gaussian noise, μ² add up.

        >>> print(ZCDP(rho=1, relation="add/remove").part(0.25))
        ρ = 0.25 (zCDP), add/remove one row
        """

    @abstractmethod
    def _repeated(self, steps: int) -> Self:
        """The guarantee over ``steps`` steps of the relation (group privacy)."""

    @property
    def loose(self) -> bool:
        """Whether the numbers are so large that users should be warned."""
        return any(getattr(self, name) > LOOSE.get(name, math.inf) for name in self.parameter_names())

    def under(self, relation: Relation | str) -> Self:
        """Convert to another relation, or raise `RelationError` if this one does not imply it.

        Add/remove implies replace-one at a loss: pure ``2ε``, approximate
        ``(2ε, (1+e^ε)δ)``, zCDP ``4ρ``. Replace-one implies attribute.

        >>> print(PureDP(epsilon=1, relation="add/remove").under("replace-one"))
        ε = 2 (pure), replace-one row
        """
        target = Relation.parse(relation)
        steps = self.relation.steps_to(target)
        return replace(self._repeated(steps), relation=target)

    def implies(self, other: Guarantee) -> bool:
        """Whether whatever satisfies this guarantee satisfies ``other``."""
        # A person with more rows covers one with fewer; rows and persons imply nothing about each other.
        if self.unit.name != other.unit.name or self.unit.max_rows < other.unit.max_rows:
            return False
        try:
            converted = self.under(other.relation)
        except RelationError:
            return False
        return other._follows_from(converted)

    @abstractmethod
    def _follows_from(self, other: Guarantee) -> bool:
        """Whether ``other``, under the same relation, implies this."""

    def __le__(self, other: object) -> bool:
        return self.implies(other) if isinstance(other, Guarantee) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return other.implies(self) if isinstance(other, Guarantee) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self <= other and not self >= other

    def __gt__(self, other: object) -> bool:
        return self >= other and not self <= other

    def __str__(self) -> str:
        joint = " one " if self.relation is not Relation.REPLACE_ONE else " "
        return f"{self.formula.format(self)}, {self.relation}{joint}{self.unit}"

    def _repr_html_(self) -> str:
        numbers = [(name, f"{getattr(self, name):g}") for name in self.parameter_names()]
        return describe(str(self), [*numbers, ("relation", str(self.relation)), ("unit", str(self.unit))])

    def to_dict(self) -> dict[str, Any]:
        """Plain form for headers, ledgers and reports."""
        numbers = {name: getattr(self, name) for name in self.parameter_names()}
        return {"kind": self.kind, **numbers, "relation": self.relation.value, "unit": self.unit.to_dict()}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Guarantee:
        """Read the plain form back; the values are checked again."""
        values = dict(plain)
        kind = values.pop("kind", None)
        if kind not in _KINDS:
            raise InputError(f"Expected kind to be one of {', '.join(sorted(_KINDS))}, got {kind!r}.")
        try:
            values["unit"] = Unit(**values.get("unit", {}))
            return _KINDS[kind](**values)
        except TypeError as error:
            raise InputError(f"A {kind} guarantee does not take these fields: {error}.") from None


@dataclass(frozen=True, kw_only=True)
class PureDP(Guarantee):
    """Pure ε-differential privacy."""

    epsilon: float
    kind: ClassVar[str] = "pure"
    formula: ClassVar[str] = "ε = {0.epsilon:g} (pure)"

    def delta_at(self, epsilon: float) -> float:
        """Exact: the profile of binary randomised response, which dominates every pure mechanism."""
        return curves.pure_delta(epsilon, self.epsilon)

    def zcdp_constant(self) -> float:
        """``ε tanh(ε/2)``, exact (Harrison and Manurangsi 2025)."""
        return curves.pure_to_zcdp(self.epsilon)

    def part(self, share: float) -> Self:
        return replace(self, epsilon=self.epsilon * _check.probability(share=share))

    def _repeated(self, steps: int) -> Self:
        return replace(self, epsilon=steps * self.epsilon)

    def _follows_from(self, other: Guarantee) -> bool:
        return isinstance(other, PureDP) and other.epsilon <= self.epsilon


@dataclass(frozen=True, kw_only=True)
class ApproxDP(Guarantee):
    """Approximate (ε, δ)-differential privacy."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approximate"
    formula: ClassVar[str] = "(ε = {0.epsilon:g}, δ = {0.delta:g})"

    def delta_at(self, epsilon: float) -> float:
        """Exact for the worst mechanism that satisfies (ε, δ)."""
        return self.delta + (1 - self.delta) * curves.pure_delta(epsilon, self.epsilon)

    def gaussian_mu(self) -> float:
        """Exact (Balle and Wang 2018)."""
        return curves.gaussian_mu(epsilon=self.epsilon, delta=self.delta)

    def zcdp_constant(self) -> float:
        """An (ε, δ) guarantee with δ > 0 implies no zCDP."""
        return math.inf

    def part(self, share: float) -> Self:
        mu = self.gaussian_mu() * math.sqrt(_check.probability(share=share))
        return replace(self, epsilon=curves.gaussian_epsilon(self.delta, mu))

    def _repeated(self, steps: int) -> Self:
        # δ is multiplied by the sum of e^(iε) over the steps, unless that overflows.
        largest = (steps - 1) * self.epsilon
        growth = sum(math.exp(step * self.epsilon) for step in range(steps)) if largest <= 700 else math.inf
        delta = self.delta * growth
        if not delta < 1:
            raise RelationError(f"{self} gives no guarantee over {steps} steps: delta would be {delta:g}.")
        return replace(self, epsilon=steps * self.epsilon, delta=delta)

    def _follows_from(self, other: Guarantee) -> bool:
        return other.delta_at(self.epsilon) <= self.delta


@dataclass(frozen=True, kw_only=True)
class ZCDP(Guarantee):
    """Zero-concentrated differential privacy."""

    rho: float
    kind: ClassVar[str] = "zcdp"
    formula: ClassVar[str] = "ρ = {0.rho:g} (zCDP)"

    def delta_at(self, epsilon: float) -> float:
        """The bound of Canonne, Kamath and Steinke 2020."""
        return curves.zcdp_delta(epsilon, self.rho)

    def gaussian_mu(self) -> float:
        """``√(2ρ)``."""
        return math.sqrt(2 * self.rho)

    def zcdp_constant(self) -> float:
        """The constant itself."""
        return self.rho

    def epsilon_at(self, delta: float) -> float:
        """Smallest ε for which `delta_at` is at most ``delta``."""
        return curves.zcdp_epsilon(delta, self.rho)

    def part(self, share: float) -> Self:
        return replace(self, rho=self.rho * _check.probability(share=share))

    def _repeated(self, steps: int) -> Self:
        return replace(self, rho=steps**2 * self.rho)

    def _follows_from(self, other: Guarantee) -> bool:
        return other.zcdp_constant() <= self.rho


def make_guarantee(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    relation: Relation | str,
    unit: Unit = ROW,
) -> Guarantee:
    """Make the guarantee that a caller's ``epsilon``, ``delta`` and ``rho`` describe.

    There is no default: exactly one of ``epsilon`` and ``rho`` must be given.

    >>> print(make_guarantee(epsilon=1, delta=1e-5, relation="replace-one"))
    (ε = 1, δ = 1e-05), replace-one row
    """
    relation = Relation.parse(relation)
    if (epsilon is None) == (rho is None):
        raise InputError("Expected exactly one of epsilon and rho; there is no default.")
    if rho is not None:
        if delta is not None:
            raise InputError(f"Expected delta to be absent beside rho={rho!r}; zCDP has none.")
        return ZCDP(rho=rho, relation=relation, unit=unit)
    assert epsilon is not None
    if delta is None or delta == 0:
        return PureDP(epsilon=epsilon, relation=relation, unit=unit)
    return ApproxDP(epsilon=epsilon, delta=delta, relation=relation, unit=unit)


_KINDS: dict[str, type[Guarantee]] = {kind.kind: kind for kind in (PureDP, ApproxDP, ZCDP)}


def split_budget(whole: Guarantee, *shares: float, gaussian: bool = False) -> tuple[Guarantee, ...]:
    """Split a guarantee: one part for each share, and the rest as the last part.

    Shares are between 0 and 1, and together less than 1. The parts of a pure guarantee are `PureDP`, others
    `ZCDP`, under the same relation and unit. What adds up depends on the guarantee and on the noise that will
    be drawn; with ``gaussian=True`` all of it is Gaussian:

    ============  ====================================  ==============================================
    whole         parts, whatever is drawn              parts, if all noise is Gaussian
    ============  ====================================  ==============================================
    ε (pure)      ε adds up                             none: Gaussian noise is never pure
    ρ (zCDP)      ρ adds up                             the same
    (ε, δ)        ρ of the largest zCDP that implies    ρ = μ²/2, since μ² adds up; μ is the largest
                  it, since ρ adds up                   that Gaussian noise may have at (ε, δ)
    ============  ====================================  ==============================================

    As real numbers, the parts never add up to more than the whole (`split_number`). Proof of the last row:
    zCDP composes adaptively by adding ρ, and ρ-zCDP implies (ε, δ) at the sum; Gaussian mechanisms compose
    adaptively to one at the root of the summed μ² (the filter ``"gaussian"``).

    >>> small, rest = split_budget(PureDP(epsilon=1, relation="add/remove"), 0.25)
    >>> small.epsilon, rest.epsilon
    (0.25, 0.75)
    """
    if isinstance(whole, PureDP):
        return tuple(replace(whole, epsilon=part) for part in split_number(whole.epsilon, *shares))
    largest = zcdp_within(whole, gaussian=gaussian)
    return tuple(replace(largest, rho=part) for part in split_number(largest.rho, *shares))


def zcdp_within(whole: Guarantee, *, gaussian: bool = False) -> ZCDP:
    """The largest zCDP that keeps a guarantee, whatever is drawn or for Gaussian noise alone."""
    if isinstance(whole, ZCDP):
        return whole
    if not isinstance(whole, ApproxDP):
        raise InputError(f"No zCDP keeps {whole}: it is pure.")
    if gaussian:
        rho = whole.gaussian_mu() ** 2 / 2
    else:
        rho, step = curves.zcdp_rho(epsilon=whole.epsilon, delta=whole.delta) * _ZCDP_MARGIN, 1e-9
        # The two curves may differ in their last digits: lower ρ until it implies (ε, δ).
        while curves.zcdp_delta(whole.epsilon, rho) > whole.delta:
            rho *= 1 - step
            step *= 2
    return ZCDP(rho=rho, relation=whole.relation, unit=whole.unit)


def split_alike(whole: Guarantee, *shares: float) -> tuple[Guarantee, ...]:
    """Split a guarantee into parts of its own kind.

    Parts of (ε, δ) have its δ and are for Gaussian noise alone.

    >>> whole = ApproxDP(epsilon=1, delta=1e-6, relation="add/remove")
    >>> print(*split_alike(whole, 0.25), sep="; ")
    (ε = 0.475232, δ = 1e-06), add/remove one row; (ε = 0.856527, δ = 1e-06), add/remove one row
    """
    if not isinstance(whole, ApproxDP):
        return split_budget(whole, *shares)
    delta, square = whole.delta, whole.gaussian_mu() ** 2
    *epsilons, last = (
        curves.gaussian_epsilon(delta, math.sqrt(part)) for part in split_number(square, *shares)
    )
    if not min([*epsilons, last]) > 0:
        raise InputError(f"A share of {whole} is too small to be stated as (epsilon, delta).")
    # Each ε is rounded: lower the last one until the noise of all parts together is within μ².
    spent = math.fsum(curves.gaussian_mu(epsilon=epsilon, delta=delta) ** 2 for epsilon in epsilons)
    step = 1e-15
    while curves.gaussian_mu(epsilon=last, delta=delta) ** 2 > square - spent:
        last *= 1 - step
        step *= 2
    return tuple(replace(whole, epsilon=epsilon) for epsilon in [*epsilons, last])


def split_number(whole: float, *shares: float) -> tuple[float, ...]:
    """``share * whole`` for each share and the rest; as real numbers they add up to at most the whole.

    >>> split_number(1.0, 0.1, 0.2)
    (0.1, 0.2, 0.7)
    """
    _check.positive(whole=whole)
    parts = [_check.probability(share=share) * whole for share in shares]
    # The rest is compared with the exact difference, so that no rounding overspends.
    exact_rest = Fraction(whole) - sum(Fraction(part) for part in parts)
    rest = (1 - math.fsum(shares)) * whole
    if Fraction(rest) > exact_rest:
        rest = float(exact_rest)
        if Fraction(rest) > exact_rest:
            rest = math.nextafter(rest, -math.inf)
    if not rest > 0 or not min(parts, default=1.0) > 0:
        raise InputError(f"Expected shares that leave something of {whole:g}, got {shares}.")
    return *parts, rest
