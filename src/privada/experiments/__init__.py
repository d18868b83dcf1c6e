"""Declarative studies, and the experiments that ``privada reproduce`` runs."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "outcome": ("Outcome",),
    "registry": ("Experiment", "experiment", "experiments"),
    "study": ("Study",),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
