"""How questions and releases travel between institutions: one mailbox over any courier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada._lazy import attach

if TYPE_CHECKING:  # for type checkers and editors
    from privada.exchange.asking import Sender as Sender
    from privada.exchange.asking import Step as Step
    from privada.exchange.courier import open_courier as open_courier
    from privada.exchange.mailbox import Mailbox as Mailbox

_HOMES = {"asking": ("Sender", "Step"), "courier": ("open_courier",), "mailbox": ("Mailbox",)}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
