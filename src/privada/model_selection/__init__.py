"""Choose settings of estimators without a loss that nobody counts."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {"division": ("PrivateKFold",), "search": ("PrivateSearchCV",)}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
