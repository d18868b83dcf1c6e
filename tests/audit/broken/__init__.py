"""A museum of broken mechanisms: questions that leak more than they claim, each in a way somebody once did.

An auditor is worth what it catches. Most exhibits are real `Question`s with an answerer, a guarantee that
they do not keep, and a small example; `privada.audit.audit_example` must catch all of them. Others decide
something of rows or send messages, and have the auditor that must catch them with them. None is installed
with the product or registered as a method.
"""

from . import accounting, counting, deciding, laws, people, printed, releasing, sending, summing
from .exhibit import EXHIBITS, Exhibit

__all__ = [
    "EXHIBITS",
    "Exhibit",
    "accounting",
    "counting",
    "deciding",
    "laws",
    "people",
    "printed",
    "releasing",
    "sending",
    "summing",
]
