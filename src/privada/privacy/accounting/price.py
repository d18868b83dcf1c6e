"""A price: what a question costs, known before any row is opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from privada import _check
from privada.exceptions import InputError
from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True, kw_only=True)
class Price:
    """The event of a question, repeated ``times`` times, under one relation and unit.

    Attributes
    ----------
    event : dp_accounting.DpEvent
        One application, relative to the sensitivity under ``guarantee.relation``.
    guarantee : Guarantee
        What one application satisfies by itself; it names the relation and the unit.
    epsilon : float or None
        Pure epsilon of one application where there is one. It can be smaller
        than what the event alone shows (an event may be an upper bound).
    times : int
        How often the event is applied.
    computed_under : Relation or None
        The relation under which the event was computed, where the price was converted from another one.
    """

    event: DpEvent
    guarantee: Guarantee
    epsilon: float | None = None
    times: int = 1
    computed_under: Relation | None = None

    def __post_init__(self) -> None:
        _check.count(times=self.times)
        if self.epsilon is not None:
            _check.positive(epsilon=self.epsilon)
        if self.computed_under is not None:
            object.__setattr__(self, "computed_under", Relation.parse(self.computed_under))

    def __mul__(self, times: int) -> Self:
        return replace(self, times=self.times * _check.count(times=times))

    @property
    def relation(self) -> Relation:
        """The neighbouring relation under which the price is stated."""
        return self.guarantee.relation

    @property
    def origin(self) -> Relation:
        """The neighbouring relation under which the event was computed."""
        return self.relation if self.computed_under is None else self.computed_under

    def under(self, relation: Relation) -> Price:
        """Convert to the relation of a ledger, or raise `RelationError`."""
        steps = self.relation.steps_to(relation)
        if steps == 1 and self.relation is relation:
            return self
        from privada.privacy.accounting import accountant

        return replace(
            self,
            event=accountant.widened(self.event, steps),
            guarantee=self.guarantee.under(relation),
            epsilon=None if self.epsilon is None else steps * self.epsilon,
            computed_under=self.origin,
        )

    def whole_event(self) -> DpEvent:
        """The event with its repetitions written out for dp-accounting."""
        import dp_accounting

        return self.event if self.times == 1 else dp_accounting.SelfComposedDpEvent(self.event, self.times)

    def to_dict(self) -> dict[str, Any]:
        """Plain form for ledgers and headers."""
        from privada.privacy.accounting import accountant

        plain = {
            "event": accountant.to_dict(self.event),
            "guarantee": self.guarantee.to_dict(),
            "epsilon": self.epsilon,
            "times": self.times,
        }
        return plain if self.computed_under is None else plain | {"computed_under": str(self.computed_under)}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Self:
        """Read the plain form back."""
        from privada.privacy.accounting import accountant

        try:
            return cls(
                event=accountant.from_dict(form["event"]),
                guarantee=Guarantee.from_dict(form["guarantee"]),
                epsilon=form["epsilon"],
                times=form["times"],
                computed_under=form.get("computed_under"),
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"This is not the plain form of a price: {error}.") from None


__all__ = ["Price"]
