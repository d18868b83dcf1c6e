"""How questions and releases travel between institutions: one mailbox over four couriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada._lazy import attach

if TYPE_CHECKING:  # what the lazy names are, for type checkers and editors
    from privada.exchange.asking import Sender as Sender
    from privada.exchange.asking import Step as Step
    from privada.exchange.mailbox import Mailbox as Mailbox
    from privada.exchange.opening import open_courier as open_courier


_HOMES = {"asking": ("Sender", "Step"), "mailbox": ("Mailbox",), "opening": ("open_courier",)}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
