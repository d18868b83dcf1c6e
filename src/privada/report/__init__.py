"""Tables, figures, pictures and one HTML page; everything in them is public or was released."""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "demo": ("demo_page", "demo_table"),
    "exhibit": ("Figure", "figures_table"),
    "ledger": ("budgets_table", "lines_table"),
    "page": ("Page", "Panel"),
    "tables": ("Table", "tables_of"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
