"""privada: adapt models, samples and clusterings to another domain when some data may not be seen.

::

    private rows ─▶ Owner ─▶ mechanism ─▶ Release ══▶ Learner ─▶ model / choice / summary ─▶ Report
                      │ (policy)             ▲          (public from here on)
                      └── charge ─▶ Ledger ──┘
                                      └─▶ Accountant ─▶ Guarantee

Nothing leaves an owner but a `Release` that was priced, charged and noised.
"""

from __future__ import annotations

from privada._lazy import attach

__version__ = "0.1.0"

_HOMES = {
    "engines.folder": ("Folder",),
    "methods.cells.estimator": ("CellClassifier", "CellMeans"),
    "methods.cells.partition": ("Bins", "Nearest", "Product"),
    "methods.cells.question": ("CellStatistics",),
    "parties.owner": ("Owner",),
    "parties.policy": ("Policy",),
    "parties.protocol": ("Ask", "run"),
    "parties.schema": ("Category", "Number", "Schema"),
    "privacy.guarantee": ("Approximate", "Guarantee", "Pure", "ZCDP", "request"),
    "privacy.ledger": ("Ledger",),
    "privacy.receipt": ("OwnerKey", "Receipt"),
    "privacy.relation": ("Relation", "Unit"),
    "privacy.release": ("Disclosure", "Question", "Release"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
