"""Who takes part: owners with private rows, and learners that ask them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada._lazy import attach

if TYPE_CHECKING:  # what the lazy names are, for type checkers and editors
    from privada.parties.owner import Owner as Owner
    from privada.parties.permissions import KnownLearner as KnownLearner
    from privada.parties.permissions import LearnerCard as LearnerCard
    from privada.parties.permissions import Policy as Policy
    from privada.parties.protocol import AskOwner as AskOwner
    from privada.parties.protocol import Inquiry as Inquiry
    from privada.parties.protocol import Learner as Learner
    from privada.parties.rows import Rows as Rows
    from privada.parties.running import run as run
    from privada.parties.schema import Category as Category
    from privada.parties.schema import Date as Date
    from privada.parties.schema import Number as Number
    from privada.parties.schema import Schema as Schema
    from privada.parties.schema import make_dummy_rows as make_dummy_rows


_HOMES = {
    "owner": ("Owner",),
    "permissions": ("KnownLearner", "LearnerCard", "Policy"),
    "protocol": ("AskOwner", "Inquiry", "Learner"),
    "rows": ("Rows",),
    "running": ("run",),
    "schema": ("Category", "Date", "Number", "Schema", "make_dummy_rows"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
