"""Choose settings of estimators, and count what the choice costs in privacy."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {"division": ("PrivateKFold",), "search": ("PrivateSearchCV",)}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
