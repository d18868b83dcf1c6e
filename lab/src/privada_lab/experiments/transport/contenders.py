"""Who is measured: ours, what people would use instead, private or not, and the printed algorithm.

Each takes a `Case` and gives a table of class probabilities, one row a target point. Target labels are
never looked at, but for the few that semi-supervised contenders are given.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.exceptions import PrivadaWarning
from privada.methods.transport.estimator import TransportClassifier
from privada.methods.transport.learner.adaptation import Prototypes, nearest_means
from privada.methods.transport.learner.learn import learn_rows
from privada.methods.transport.learner.rows import NoisyRows
from privada.methods.transport.questions.features import rescaled
from privada.methods.transport.questions.rows import RowRelease
from privada.parties import Category, Schema
from privada.parties.in_memory import owner_in_memory
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.running import run
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation
from privada_lab.baselines import PATE, DPLogisticRegression
from privada_lab.baselines.network import NetworkClassifier
from privada_lab.baselines.transport import OTDA, source_only, target_only
from privada_lab.datasets.domain_pairs import Part
from privada_lab.experiments.rivals import Sides, predictions
from privada_lab.experiments.transport.case import Case, Side
from privada_lab.papers.transport import paper_dpda, printed_sigma

OTDA_REGULARISATIONS = (0.01, 0.05, 0.2)  # the paper's and wider ones; the best by the target's labels counts
REACH = 2.0  # rows of norm 1 about a centre of norm at most 1, in orthonormal components
TEACHERS, QUERIES = 20, 20  # of PATE: votes on few points, or the noise drowns them
NOISE_RATIO, LABEL_EPSILON, SHRUNK = 1.1, 1.0, 10  # printed: σ/w, ε' of counts, features over components
FOLDS = 5
BATCH, BATCHES = 128, 4  # rows in a minibatch of DPDA made sound, and how many
PRINTED_BATCHES = 20  # of DPDA as printed
LABEL_SHARE = 0.5  # of ε, for the labels of one batch
ALGORITHMS = {
    "reviews": "descent"
}  # two classes that are no clusters; chosen after class means had been seen to fail


@public_rows()
def ours(
    case: Case, epsilon: float, *, labels: IntArray | None = None, algorithm: str | None = None
) -> TransportClassifier:
    """`TransportClassifier` through roots in the target's components; ``labels`` are -1 where unknown."""
    usual = "statistics" if labels is not None else ALGORITHMS.get(case.benchmark, "statistics")
    model = TransportClassifier(
        features=case.inside,
        epsilon=epsilon,
        delta=case.delta,
        classes=tuple(range(case.n_classes)),
        bounds=(-REACH, REACH),
        algorithm=usual if algorithm is None else algorithm,
    )
    return model.fit(case.mapped, case.labels[0], case.target.points, labels)


def untransported(case: Case, model: TransportClassifier) -> FloatArray:
    """Source only with the same privacy: the class means of the release that ours had, and nothing else."""
    prototypes = Prototypes.of(model.question_, model.release_)
    return nearest_means(prototypes, case.target.points, radius=case.inside.radius)


def private_logistic(side: Side, *, n_classes: int, epsilon: float) -> DPLogisticRegression:
    """Noisy gradients on a source; it knows no target, so one release serves all."""
    size = len(side.rows)
    model = DPLogisticRegression(
        epsilon=epsilon,
        delta=1 / (10 * size),
        classes=tuple(range(n_classes)),
        norm_bound=1.0,
        relation="replace-one",
        size=size,
    )
    return model.fit(side.rows, side.domain.y)


def trivial_rivals(case: Case, epsilon: float) -> Iterator[tuple[str, IntArray]]:
    """Labels that trivial rivals give the target; columns are standardised by it, and its labels unknown."""
    unknown = Part(case.target.rows, np.zeros(len(case.target.rows), dtype=np.int64))
    sides = Sides(
        unknown,
        Part(case.source.rows, case.labels[0]),
        unknown,
        (-1.0, 1.0),
        classes=tuple(range(case.n_classes)),
    )
    yield from predictions(sides, {"epsilon": epsilon, "delta": case.delta})


def pate(case: Case, epsilon: float) -> FloatArray:
    """Teachers hold the source; the student is trained on noisy votes on a few target points."""
    model = PATE(
        TEACHERS,
        epsilon=epsilon,
        delta=case.delta,
        classes=tuple(range(case.n_classes)),
        norm_bound=1.0,
        n_queries=min(QUERIES, len(case.target.rows)),
        relation="replace-one",
        size=len(case.source.rows),
    )
    model.fit(case.source.rows, case.labels[0], Xt=case.target.rows)
    return model.predict_proba(case.target.rows)


def in_the_clear(case: Case) -> dict[str, FloatArray]:
    """Source only and transport without privacy, each also smoothed over the target's graph."""
    S, T, y = case.source.rows, case.target.rows, case.labels[0]
    tables = {"source only": source_only(S, y).predict_proba(T)}
    tables |= _couplings(case, OTDA_REGULARISATIONS if case.small else OTDA_REGULARISATIONS[-1:])
    deep = adversarial(case)
    if deep is not None:
        tables["ADDA"] = deep
    return tables | _propagated(case, tables)


def quickly_in_the_clear(case: Case) -> dict[str, FloatArray]:
    """Source only and the fastest coupling, each also smoothed."""
    S, T, y = case.source.rows, case.target.rows, case.labels[0]
    tables = {"source only": source_only(S, y).predict_proba(T)}
    tables |= _couplings(case, OTDA_REGULARISATIONS[-1:])
    return tables | _propagated(case, tables)


def _couplings(case: Case, regularisations: tuple[float, ...]) -> dict[str, FloatArray]:
    """Transport without privacy, where POT is there (extra ``transport``)."""
    if find_spec("ot") is None:
        return {}
    S, T, y = case.source.rows, case.target.rows, case.labels[0]
    return {f"OTDA {reg_e:g}": OTDA(reg_e=reg_e).fit(S, y, T).predict_proba(T) for reg_e in regularisations}


def _propagated(case: Case, tables: dict[str, FloatArray]) -> dict[str, FloatArray]:
    return {f"{name}, propagated": case.target.propagation.smooth(table) for name, table in tables.items()}


def adversarial(case: Case) -> FloatArray | None:
    """ADDA without privacy, where torch is there (extra ``deep``)."""
    if find_spec("torch") is None:
        return None
    from privada_lab.baselines.adda import ADDA

    return ADDA().fit(case.source.rows, case.labels[0], case.target.rows).predict_proba(case.target.rows)


def target_folds(case: Case) -> FloatArray:
    """Target only, with its labels: each fold by the others. What labels at home would give."""
    from sklearn.model_selection import StratifiedKFold

    T, y = case.target.rows, case.labels[1]
    found = np.zeros((len(T), case.n_classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes with fewer rows than folds
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(T, y))
    for train, test in folds:
        model = target_only(T[train], y[train])
        found[np.ix_(test, model.classes_)] = model.predict_proba(T[test])
    return found


def one_label_a_class(case: Case, seed: int) -> IntArray:
    """A target's labels with one known for each class, -1 elsewhere."""
    rng, y = np.random.default_rng(seed), case.labels[1]
    known = np.full(len(y), -1, dtype=np.int64)
    for code in range(case.n_classes):
        of_class = np.flatnonzero(y == code)
        if len(of_class):
            known[rng.choice(of_class)] = code
    return known


def few_labels_only(case: Case, known: IntArray) -> FloatArray:
    """Target only, semi-supervised: trained on the known labels."""
    at = np.flatnonzero(known >= 0)
    model, found = target_only(case.target.rows[at], known[at]), np.zeros((len(known), case.n_classes))
    found[:, model.classes_] = model.predict_proba(case.target.rows)
    return found


def otda_with_labels(case: Case, known: IntArray) -> FloatArray:
    """Transport without privacy that forbids mass between different labels, smoothed."""
    T = case.target.rows
    model = OTDA(reg_e=OTDA_REGULARISATIONS[-1]).fit(case.source.rows, case.labels[0], T, known)
    return case.target.propagation.smooth(model.predict_proba(T))


def printed(
    case: Case, seed: int, *, known: IntArray | None = None, network: bool = False, unit: bool = False
) -> FloatArray:
    """DPDA as the paper prints it, at its noise ratio: attribute level at most, not private as claimed.

    Features are raw, as the paper's are, and an attribute that moves by 1 is a small part of a row; with
    ``unit`` rows have norm 1. ``known`` are target labels, -1 where unknown; they are trained on too, as
    Algorithm 2 says.
    """
    X, T = (side.rows if unit else side.domain.X for side in (case.source, case.target))
    mapped, labels = _printed_rows(case, X, case.labels[0], T, seed=seed, known=known)
    rows = mapped if unit else rescaled(mapped, "root")
    if known is not None:
        rows = np.vstack([rows, case.target.rows[known >= 0]])
        labels = np.r_[labels, known[known >= 0]]
    return _trained(rows, labels, case.target.rows, case.n_classes, network=network)


def printed_in_batches(case: Case, seed: int, *, network: bool = False) -> FloatArray:
    """The same in minibatches, as all of the paper's accuracies are; both sides' rows are drawn for each."""
    rng, rows, labels = np.random.default_rng(seed), [], []
    X, y, T = case.source.domain.X, case.labels[0], case.target.domain.X
    for number in range(PRINTED_BATCHES):
        mine, theirs = (rng.permutation(len(each))[:BATCH] for each in (X, T))
        found = _printed_rows(case, X[mine], y[mine], T[theirs], seed=seed * PRINTED_BATCHES + number)
        rows.append(rescaled(found[0], "root"))
        labels.append(found[1])
    return _trained(
        np.vstack(rows), np.concatenate(labels), case.target.rows, case.n_classes, network=network
    )


def _printed_rows(
    case: Case, X: FloatArray, y: IntArray, T: FloatArray, *, seed: int, known: IntArray | None = None
) -> tuple[FloatArray, IntArray]:
    """Mapped rows and their labels, at the noise ratio that the paper uses throughout."""
    size = len(case.source.rows)
    sent = paper_dpda(
        X,
        y,
        T,
        n_classes=case.n_classes,
        components=max(1, X.shape[1] // SHRUNK),
        epsilon=printed_epsilon(size),
        delta=1 / (1.2 * size),
        label_epsilon=LABEL_EPSILON,
        target_labels=known,
        insecure_seed=seed,
    )
    assert sent.mapped is not None
    return sent.mapped, sent.labels


def _trained(X: FloatArray, y: IntArray, T: FloatArray, n_classes: int, *, network: bool) -> FloatArray:
    """Probabilities by the linear target model, or by the paper's three layers (extra ``deep``)."""
    model = NetworkClassifier().fit(X, y) if network else target_only(X, y)
    found = np.zeros((len(T), n_classes))
    found[:, model.classes_] = model.predict_proba(T)
    return found


def has_network() -> bool:
    """Whether the extra ``deep`` is installed."""
    return find_spec("torch") is not None


def otda_network(case: Case) -> FloatArray:
    """Transport without privacy, and the three-layer target model."""
    S, T, y = case.source.rows, case.target.rows, case.labels[0]
    mapped = OTDA(reg_e=OTDA_REGULARISATIONS[-1]).fit(S, y, T).mapped_
    return _trained(mapped, y, T, case.n_classes, network=True)


def minibatched(case: Case, epsilon: float, *, batches: int = BATCHES, network: bool = False) -> FloatArray:
    """DPDA made sound in minibatches at record level: secret samples, randomised labels, noise for records.

    All batches together have one plan. With ``network`` the target model is the three-layer one, trained on
    mapped rows and their most likely classes.
    """
    size = len(case.mapped)
    question = RowRelease(
        features=case.inside,
        size=size,
        n_classes=case.n_classes,
        label_epsilon=LABEL_SHARE * epsilon / math.sqrt(batches),
        batch_size=min(BATCH, size),
        batches=batches,
        guarantee=ApproxDP(epsilon=epsilon, delta=case.delta, relation=Relation.REPLACE_ONE),
    )
    d, classes = case.inside.components, tuple(range(case.n_classes))
    schema = Schema.of_numbers(
        bounds=(-REACH, REACH), width=d, size=size, label=Category(name="label", values=classes)
    )
    owner = owner_in_memory(
        np.clip(case.mapped, -REACH, REACH),
        [question],
        y=case.labels[0],
        schema=schema,
        budget=question.guarantee,
        dataset="source",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        model = run(learn_rows({"source": question}, case.target.points, classes=classes), {"source": owner})
    if not network:
        return model.probabilities
    batch = NoisyRows.of(question, model.release)
    weights = np.concatenate([each.weights for each in batch if each.weights is not None])
    return _trained(model.mapped, weights.argmax(axis=1), case.target.points, case.n_classes, network=True)


def printed_epsilon(n: int) -> float:
    """The ε at which Theorem 2 asks for the printed noise ratio, δ = 1/(1.2 n).

    >>> round(printed_epsilon(4365), 2)
    4.53
    """
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        return printed_sigma(1.0, epsilon=epsilon, delta=1 / (1.2 * n)) - NOISE_RATIO

    return float(brentq(excess, 0.1, 50.0))


__all__ = [
    "adversarial",
    "few_labels_only",
    "has_network",
    "in_the_clear",
    "minibatched",
    "one_label_a_class",
    "otda_network",
    "otda_with_labels",
    "ours",
    "pate",
    "printed",
    "printed_epsilon",
    "printed_in_batches",
    "private_logistic",
    "quickly_in_the_clear",
    "target_folds",
    "trivial_rivals",
    "untransported",
]
