"""Declarative studies: reading, pricing, and running in one process or through a folder."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {"outcome": ("Outcome",), "study": ("Study",)}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
