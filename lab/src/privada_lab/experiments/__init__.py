"""The experiments that ``privada reproduce`` runs."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "registry": ("Experiment", "experiment", "experiments"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
