"""How far a study over an exchange is: one line, owner by owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privada.exchange.asking import Step

_MARKS = {
    "asked": "asked",
    "answered": "done",
    "damaged": "waiting for a reply that can be read",
    "refused": "refused",
    "late": "late",
    "left out": "left out",
}


class Progress:
    """Keeps what happened to each owner in the present round.

    Parameters
    ----------
    title : str
        Of the study.
    update : function
        Shows a line.
    """

    def __init__(self, title: str, update: Callable[[str], None]) -> None:
        self.title, self._update = title, update
        self.left_out: dict[str, str] = {}
        self._round, self._states = 0, dict[str, str]()

    def note(self, step: Step) -> None:
        """Take one step in, and show where all owners are."""
        if step.round != self._round:
            self._round, self._states = step.round, {}
        self._states[step.owner] = _MARKS[step.state]
        if step.state == "left out":
            self.left_out.setdefault(step.owner, step.reason.rstrip(".") + ".")
        self._update(self.line())

    def line(self) -> str:
        """The present round in one line.

        >>> Progress("Cells", print).line()
        'Cells, round 0'
        """
        owners = ", ".join(f"{name} {state}" for name, state in self._states.items())
        return f"{self.title}, round {self._round}" + (f": {owners}" if owners else "")


__all__ = ["Progress"]
