"""privada's own event: a mechanism on a random sample whose members are visible.

dp-accounting has events for samples that stay secret. It has none for a visible sample, which protects
less: a member (a share γ of all) loses what the mechanism loses, everybody else nothing.

=====================  ==================================================
δ(ε), ε >= 0           ``γ δ₀(ε)``, at the same ε
Rényi, order α         ``log(1 - γ + γ e^((α-1) D₀)) / (α - 1)``
ε, ρ and μ             those of the mechanism
=====================  ==================================================

where 0 marks the mechanism itself; the proof, and why rows at attribute level are such a sample however
secretly they were drawn, is in privacy.md, section 3 (c). Importing this module imports dp-accounting.
"""

from __future__ import annotations

import attr
from dp_accounting import dp_event


@attr.s(frozen=True, slots=True, auto_attribs=True)
class VisiblySampledDpEvent(dp_event.DpEvent):
    """A mechanism on ``sample_size`` of ``source_dataset_size`` rows, drawn anew; its members are visible.

    The fields are those of dp-accounting's ``SampledWithoutReplacementDpEvent``.
    """

    source_dataset_size: int
    sample_size: int
    event: dp_event.DpEvent


__all__ = ["VisiblySampledDpEvent"]
