"""The methods: one package each, with questions, the owners' side, the learner's side, and a `Method`."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "example": ("DemoRow", "Example"),
    "method": ("Method", "Public", "find_method", "methods", "setting"),
    "method_estimator": ("MethodEstimator",),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
