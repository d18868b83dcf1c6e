"""How questions and releases travel between institutions."""

from __future__ import annotations

from privada._lazy import attach

__all__, __getattr__, __dir__ = attach(__name__, {"folder": ("Folder",)})
