"""The words of the field: relation, guarantee, bounds, noise, mechanism, event, ledger, release.

No party and no network lives here. Everything is importable from this
package; heavy modules are loaded when they are first used.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "bounds": ("Ball", "Box", "Classes", "Grid"),
    "filters": ("Filter",),
    "guarantee": ("Approximate", "Guarantee", "Pure", "ZCDP", "request"),
    "ledger": ("Ledger",),
    "mechanism": ("Exponential", "Gaussian", "KNorm", "Laplace", "Mechanism", "RandomisedResponse"),
    "noise": ("Noise", "Rehearsal", "SecureNoise"),
    "price": ("Price",),
    "receipt": ("OwnerKey", "Receipt"),
    "relation": ("ROW", "Relation", "Unit"),
    "release": ("Disclosure", "Question", "Release"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
