"""What to expect of an asking before anything is spent."""

from __future__ import annotations

from privada.methods.forecast import Forecast
from privada.methods.marginals.learner.learn import Public
from privada.privacy.guarantee import Guarantee


def forecast_error(public: Public, *, guarantee: Guarantee, size: int) -> Forecast:
    """Placeholder."""
    return Forecast(ratio=0.7, low=0.3, high=1.0, beside="the noisy majority class")


__all__ = ["forecast_error"]
