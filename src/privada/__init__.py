"""privada: adapt models, samples and clusterings to another domain when some data cannot be shared.

::

    private rows ─▶ Owner ─▶ mechanism ─▶ Release ══▶ Learner ─▶ model / choice / summary ─▶ Report
                      │ (policy)             ▲          (public from here on)
                      └── charge ─▶ Ledger ──┘
                                      └─▶ Accountant ─▶ Guarantee

The only thing that leaves an owner is a `Release`: priced, charged, and with noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada._lazy import attach

if TYPE_CHECKING:  # what the lazy names are, for type checkers and editors
    from privada._progress import progress as progress
    from privada.exchange.mailbox import Mailbox as Mailbox
    from privada.methods.cells.estimator import CellClassifier as CellClassifier
    from privada.methods.cells.estimator import CellMeans as CellMeans
    from privada.methods.cells.questions.partition import Bins as Bins
    from privada.methods.cells.questions.partition import GridCells as GridCells
    from privada.methods.cells.questions.partition import NearestCells as NearestCells
    from privada.methods.cells.questions.statistics import CellStatistics as CellStatistics
    from privada.methods.clustering.estimator import SourceTargetMedoids as SourceTargetMedoids
    from privada.methods.evaluation.estimator import PrivateEvaluator as PrivateEvaluator
    from privada.methods.evaluation.estimator import evaluate as evaluate
    from privada.methods.marginals.estimator import MarginalClassifier as MarginalClassifier
    from privada.methods.marginals.estimator import MarginalRegressor as MarginalRegressor
    from privada.methods.models.model_file import load as load
    from privada.methods.preprocessing import PublicEncoder as PublicEncoder
    from privada.methods.preprocessing import PublicScaler as PublicScaler
    from privada.methods.preprocessing import make_private_pipeline as make_private_pipeline
    from privada.methods.reweighting.estimator import ReweightedClassifier as ReweightedClassifier
    from privada.methods.reweighting.estimator import ReweightedRegressor as ReweightedRegressor
    from privada.methods.summarization.estimator import PrivateSummarizer as PrivateSummarizer
    from privada.methods.transport.estimator import TransportClassifier as TransportClassifier
    from privada.methods.transport.wasserstein import private_wasserstein as private_wasserstein
    from privada.parties.one_process.holding import Dataset as Dataset
    from privada.parties.owner import Owner as Owner
    from privada.parties.permissions import Policy as Policy
    from privada.parties.protocol import AskOwner as AskOwner
    from privada.parties.running import run as run
    from privada.parties.schema import Category as Category
    from privada.parties.schema import Date as Date
    from privada.parties.schema import Number as Number
    from privada.parties.schema import Schema as Schema
    from privada.privacy.guarantee import ZCDP as ZCDP
    from privada.privacy.guarantee import ApproxDP as ApproxDP
    from privada.privacy.guarantee import Guarantee as Guarantee
    from privada.privacy.guarantee import PureDP as PureDP
    from privada.privacy.guarantee import make_guarantee as make_guarantee
    from privada.privacy.ledger import Ledger as Ledger
    from privada.privacy.receipt import OwnerKey as OwnerKey
    from privada.privacy.receipt import Receipt as Receipt
    from privada.privacy.relation import Relation as Relation
    from privada.privacy.relation import Unit as Unit
    from privada.privacy.release import Disclosure as Disclosure
    from privada.privacy.release import Question as Question
    from privada.privacy.release import Release as Release


__version__ = "0.2.0"

_HOMES = {
    "_progress": ("progress",),
    "exchange.mailbox": ("Mailbox",),
    "methods.cells.estimator": ("CellClassifier", "CellMeans"),
    "methods.cells.questions.partition": ("Bins", "NearestCells", "GridCells"),
    "methods.cells.questions.statistics": ("CellStatistics",),
    "methods.clustering.estimator": ("SourceTargetMedoids",),
    "methods.reweighting.estimator": ("ReweightedClassifier", "ReweightedRegressor"),
    "methods.summarization.estimator": ("PrivateSummarizer",),
    "methods.transport.estimator": ("TransportClassifier",),
    "methods.transport.wasserstein": ("private_wasserstein",),
    "methods.evaluation.estimator": ("PrivateEvaluator", "evaluate"),
    "methods.models.model_file": ("load",),
    "methods.preprocessing": ("PublicEncoder", "PublicScaler", "make_private_pipeline"),
    "parties.one_process.holding": ("Dataset",),
    "methods.marginals.estimator": ("MarginalClassifier", "MarginalRegressor"),
    "parties.owner": ("Owner",),
    "parties.permissions": ("Policy",),
    "parties.protocol": ("AskOwner",),
    "parties.running": ("run",),
    "parties.schema": ("Category", "Date", "Number", "Schema"),
    "privacy.guarantee": ("ApproxDP", "Guarantee", "PureDP", "ZCDP", "make_guarantee"),
    "privacy.ledger": ("Ledger",),
    "privacy.receipt": ("OwnerKey", "Receipt"),
    "privacy.relation": ("Relation", "Unit"),
    "privacy.release": ("Disclosure", "Question", "Release"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
