"""Who takes part: owners with private rows, and learners that ask them."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "owner": ("Owner",),
    "policy": ("Policy",),
    "protocol": ("Ask", "Learner", "run"),
    "rows": ("Rows",),
    "schema": ("Category", "Number", "Schema"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
