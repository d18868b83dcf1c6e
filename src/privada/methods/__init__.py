"""Rooms with the same furniture: question, owner, learner, estimator, paper, example."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {"registry": ("DemoRow", "Example", "Method", "method", "methods")}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
