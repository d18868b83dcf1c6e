"""What a study may expect at other budgets, before anything is spent and without looking at a private row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from privada import _check
from privada.exceptions import InputError
from privada.methods.forecast import Forecast
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.mechanism import Lattice
from privada.studies.study import Study

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What is expected at one budget.

    Attributes
    ----------
    guarantee : Guarantee
        What each owner would be asked for.
    forecast : Forecast or None
        Expected error over that of doing nothing, where the method has a forecast.
    half_widths : mapping of draw to float
        Noise of the first questions: each released number is within so much with 95 % confidence.
    """

    guarantee: Guarantee
    forecast: Forecast | None
    half_widths: dict[str, float]


def forecast_study(study: Study, *, factors: Sequence[float] = FACTORS) -> list[Outlook]:
    """The outlook at multiples of the study's budget; nothing is asked."""
    if not factors:
        raise InputError("Expected at least one factor.")
    return [_outlook(study, scale(study.guarantee, factor)) for factor in factors]


def scale(guarantee: Guarantee, factor: float) -> Guarantee:
    """The same kind of guarantee with ε times a factor, or ρ times its square."""
    _check.positive(factor=factor)
    if isinstance(guarantee, ZCDP):
        return replace(guarantee, rho=guarantee.rho * factor**2)
    if isinstance(guarantee, (PureDP, ApproxDP)):
        return replace(guarantee, epsilon=guarantee.epsilon * factor)
    raise InputError(f"Expected a budget of ε, (ε, δ) or ρ, got {guarantee}.")


def _outlook(study: Study, guarantee: Guarantee) -> Outlook:
    inquiry = replace(study, guarantee=guarantee).inquiry
    draws = {name: draw for ask in inquiry.asks for name, draw in ask.question.plan.draws.items()}
    widths = {name: draw.half_width(0.95) for name, draw in draws.items() if isinstance(draw, Lattice)}
    return Outlook(guarantee=guarantee, forecast=inquiry.forecast, half_widths=widths)


__all__ = ["FACTORS", "Outlook", "forecast_study", "scale"]
