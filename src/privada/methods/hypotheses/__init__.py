"""Hypotheses: what a learner may ask an owner to run, which several methods judge or choose from.

Not a method by itself: no card, no study. Constants, linear scores and networks are our own forms; everything
else is ONNX, run by the owner in a locked process of its own.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "forms": ("Constant", "Hypothesis", "Network", "from_plain", "linear", "to_plain"),
    "onnx": ("Onnx",),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
