"""A museum of broken mechanisms: questions that leak more than they claim, each in a way somebody once did.

An auditor is worth what it catches. Every exhibit is a real `Question` with an answerer, a guarantee that
it does not keep, and a small example; `privada.audit.audit_example` must catch all of them. None is
installed with the product or registered as a method.
"""

from . import accounting, counting, laws, people, printed, releasing, summing
from .exhibit import EXHIBITS, Exhibit

__all__ = [
    "EXHIBITS",
    "Exhibit",
    "accounting",
    "counting",
    "laws",
    "people",
    "printed",
    "releasing",
    "summing",
]
