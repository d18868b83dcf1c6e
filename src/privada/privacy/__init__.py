"""Terms of differential privacy: relation, guarantee, bounds, noise, mechanism, event, ledger, release.

It contains no party and no network. Everything is importable from this
package; heavy modules are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada._lazy import attach

if TYPE_CHECKING:  # what the lazy names are, for type checkers and editors
    from privada.privacy.accounting.accountant import Price as Price
    from privada.privacy.accounting.filters import Filter as Filter
    from privada.privacy.accounting.filters import Vintage as Vintage
    from privada.privacy.asker import Asker as Asker
    from privada.privacy.bounds import Ball as Ball
    from privada.privacy.bounds import Box as Box
    from privada.privacy.bounds import Classes as Classes
    from privada.privacy.bounds import Grid as Grid
    from privada.privacy.guarantee import ZCDP as ZCDP
    from privada.privacy.guarantee import ApproxDP as ApproxDP
    from privada.privacy.guarantee import Guarantee as Guarantee
    from privada.privacy.guarantee import PureDP as PureDP
    from privada.privacy.guarantee import make_guarantee as make_guarantee
    from privada.privacy.keys import LearnerKey as LearnerKey
    from privada.privacy.keys import OwnerKey as OwnerKey
    from privada.privacy.ledger import Ledger as Ledger
    from privada.privacy.mechanism import Exponential as Exponential
    from privada.privacy.mechanism import Gaussian as Gaussian
    from privada.privacy.mechanism import KNorm as KNorm
    from privada.privacy.mechanism import Laplace as Laplace
    from privada.privacy.mechanism import Mechanism as Mechanism
    from privada.privacy.mechanism import RandomisedResponse as RandomisedResponse
    from privada.privacy.noise import Noise as Noise
    from privada.privacy.noise import Rehearsal as Rehearsal
    from privada.privacy.noise import SecureNoise as SecureNoise
    from privada.privacy.receipt import Receipt as Receipt
    from privada.privacy.relation import ROW as ROW
    from privada.privacy.relation import Relation as Relation
    from privada.privacy.relation import Unit as Unit
    from privada.privacy.release import Disclosure as Disclosure
    from privada.privacy.release import Question as Question
    from privada.privacy.release import QuestionHeader as QuestionHeader
    from privada.privacy.release import Release as Release


_HOMES = {
    "asker": ("Asker",),
    "bounds": ("Ball", "Box", "Classes", "Grid"),
    "accounting.accountant": ("Price",),
    "accounting.filters": ("Filter", "Vintage"),
    "guarantee": ("ApproxDP", "Guarantee", "PureDP", "ZCDP", "make_guarantee"),
    "keys": ("LearnerKey", "OwnerKey"),
    "ledger": ("Ledger",),
    "mechanism": ("Exponential", "Gaussian", "KNorm", "Laplace", "Mechanism", "RandomisedResponse"),
    "noise": ("Noise", "Rehearsal", "SecureNoise"),
    "receipt": ("Receipt",),
    "relation": ("ROW", "Relation", "Unit"),
    "release": ("Disclosure", "Question", "QuestionHeader", "Release"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
