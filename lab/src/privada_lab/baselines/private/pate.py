"""PATE: teachers on disjoint shards vote, with noise, on public points; a student learns from the votes.

Every row is put into one of m shards by a fair draw that does not look at it. A teacher is trained on
each shard and votes on every public query point; the counts of votes are released with noise.

*Sensitivity.* Fix the shard of every row; it is drawn independently of all rows. A neighbour changes
one row of one shard, under both relations (add/remove: couple the draws of the other rows;
replace-one: the new row takes the old one's shard), hence one teacher, hence at most one vote on each
of Q queries, which lowers one count by 1 and raises another by 1. So the whole table of counts moves by at
most ``√(2Q)`` in L2 and ``2Q`` in L1; a mixture over shards keeps the bound (joint convexity). A
shard without rows, or on which training fails, votes for the first class: also one vote.

Reference: N. Papernot et al., *Scalable private learning with PATE*, ICLR 2018. Their data-dependent
accounting is itself private and is not used: the price here is known before any row is opened.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import PureDP, make_guarantee
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan
from privada.privacy.noise import Noise
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private._asking import BaselineQuestion, ask, ball_schema, class_list, row_width


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TeacherVotes(BaselineQuestion):
    """Ask for noisy votes of teachers on public points.

    Parameters
    ----------
    queries : array of shape (queries, features)
        Public points.
    n_classes, n_teachers : int
    norm_bound : float
        Rows and queries are clipped to this norm.
    teacher : scikit-learn classifier
        Cloned for every shard. Part of the question's digest by its parameters.

    Privacy
    -------
    Unit: one row (a person with m rows: m votes a query). Both relations: one vote a query, L2 √(2Q)
    and L1 2Q over all. Laplace noise for a pure guarantee, Gaussian otherwise. Proof: the module's docstring.
    """

    queries: FloatArray
    n_classes: int
    n_teachers: int
    norm_bound: float
    teacher: Any
    kind: ClassVar[str] = "baselines.pate"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.pate:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "queries", _check.matrix(queries=self.queries))
        _check.count(least=2, n_classes=self.n_classes)
        _check.count(n_teachers=self.n_teachers)
        _check.positive(norm_bound=self.norm_bound)
        if not (hasattr(self.teacher, "fit") and hasattr(self.teacher, "predict")):
            raise InputError(f"Expected teacher to be a classifier, got {type(self.teacher).__name__}.")

    def fits(self, schema: PublicSchema) -> None:
        """Check features and classes against the owner's schema."""
        if self.queries.shape[1] != schema.width or self.n_classes != len(schema.classes):
            raise InputError(f"Expected queries of width {schema.width} and {len(schema.classes)} classes.")

    def planned(self) -> Plan:
        """One draw for the whole table of votes."""
        return Plan(draws={"votes": self._mechanism()})

    def _mechanism(self) -> Mechanism:
        n = len(self.queries)
        if isinstance(self.guarantee, PureDP):
            return Laplace.calibrated(sensitivity=2.0 * n * self.rows, epsilon=self.guarantee.epsilon)
        l2 = math.sqrt(2 * n) * self.rows
        return Gaussian.calibrated(sensitivity=l2, mu=self.guarantee.gaussian_mu(), whole=True)

    def parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Own fields; a teacher has its text as plain form, from which it is not made again."""
        plain, arrays = super().parts()
        return plain | {"teacher": repr(self.teacher)}, arrays


def answer(question: TeacherVotes, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Train a teacher on each shard, count the votes, then draw."""
    everything, ball = rows.gathered(), Ball(radius=question.norm_bound)
    X, codes, queries = ball.clip(everything.X), everything.labels, ball.clip(question.queries)
    shards = _shards(len(X), question.n_teachers, draw.noise)
    counts = np.zeros((len(queries), question.n_classes), dtype=np.int64)
    for index in range(question.n_teachers):
        mine = shards == index
        votes = _votes(question.teacher, X[mine], codes[mine], queries, seed=index)
        counts[np.arange(len(queries)), np.clip(votes, 0, question.n_classes - 1)] += 1
    mechanism = question.plan.lattice("votes")
    return {"votes": draw("votes", mechanism.place(counts))}


def _shards(n: int, n_teachers: int, noise: Noise) -> IntArray:
    """A shard for each row, drawn without looking at it; 64-bit words make the draw fair to 1e-15."""
    return (noise.words(n) % np.uint64(n_teachers)).astype(np.int64)


def _votes(teacher: Any, X: FloatArray, codes: IntArray, queries: FloatArray, *, seed: int) -> IntArray:
    """A teacher's votes. Warnings and errors of training stay here: they could tell of a row."""
    if len(codes) == 0 or (codes == codes[0]).all():
        return np.full(len(queries), codes[0] if len(codes) else 0, dtype=np.int64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(fitted(teacher, X, codes, seed=seed).predict(queries)).astype(np.int64)
    except Exception:  # whatever a classifier raises: its message and its type stay here
        return np.zeros(len(queries), dtype=np.int64)


def fitted(model: Any, X: FloatArray, y: npt.NDArray[Any], *, seed: int) -> Any:
    """A clone, seeded where it takes a seed, and trained."""
    copy = clone(model)
    if "random_state" in copy.get_params():
        copy.set_params(random_state=seed)
    return copy.fit(X, y)


class PATE(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A student of noisy teachers.

    Parameters
    ----------
    n_teachers : int
        Disjoint shards of the private rows. Each needs enough rows to learn from.
    epsilon, delta, rho : float
        The guarantee; epsilon and rho exclude each other.
    classes : sequence
        Public list of the labels.
    norm_bound : float
        Rows are clipped to this norm; none is guessed.
    n_queries : int, optional
        On how many public points the teachers vote; all by default. Fewer queries, less noise on each.
    teacher, student : scikit-learn classifier, optional
        Logistic regression by default.
    relation : str
        "add/remove", or "replace-one", under which ``size`` is public and needed.
    size : int, optional
        Declared number of rows.
    random_state : int
        Of public randomness: which points are asked about, and the student.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    queries_, answers_
        Which public points were asked about, and what the noisy votes said.
    student_, classes_
    release_, guarantee_
        What left the owner, and what was promised.

    Privacy
    -------
    Unit: one row, which touches one teacher and one vote a query under either relation. Proof:
    `privada_lab.baselines.private.pate`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> X = rng.normal(0, 0.1, size=(1000, 2)) + np.where(y, 0.3, -0.3)[:, None]
    >>> model = PATE(20, epsilon=2, delta=1e-5, classes=(0, 1), norm_bound=1, n_queries=30)
    >>> model.fit(X, y, Xt=rng.normal(0, 0.4, size=(100, 2))).predict([[0.3, 0.3], [-0.3, -0.3]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        n_teachers: int = 20,
        epsilon: float | None = None,
        delta: float | None = None,
        classes: Any = None,
        norm_bound: float | None = None,
        *,
        rho: float | None = None,
        n_queries: int | None = None,
        teacher: Any = None,
        student: Any = None,
        relation: str = "add/remove",
        size: int | None = None,
        random_state: int = 0,
        insecure_seed: int | None = None,
    ) -> None:
        self.n_teachers = n_teachers
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.norm_bound = norm_bound
        self.rho = rho
        self.n_queries = n_queries
        self.teacher = teacher
        self.student = student
        self.relation = relation
        self.size = size
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any, Xt: Any = None) -> Self:
        """Train teachers on the private ``X, y`` and a student on the public, unlabelled ``Xt``."""
        width = row_width(X)
        schema = ball_schema(
            self.norm_bound, width=width, size=self.size, classes=self.classes, labelled=True
        )
        if Xt is None:
            raise InputError("Expected Xt, public points to vote on.")
        self.queries_ = self._chosen(_check.matrix(width=width, Xt=Xt))
        question = TeacherVotes(
            queries=self.queries_,
            n_classes=len(class_list(self.classes)),
            n_teachers=self.n_teachers,
            norm_bound=float(self.norm_bound or 0),
            teacher=_default(self.teacher),
            guarantee=make_guarantee(
                epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation
            ),
        )
        self.release_ = ask(question, X, y, schema=schema, insecure_seed=self.insecure_seed)
        self.guarantee_ = self.release_.guarantee
        self.classes_ = np.asarray(schema.classes.names)
        self.n_features_in_ = width
        return self._teach(self.release_["votes"].argmax(axis=1))

    def _chosen(self, points: FloatArray) -> FloatArray:
        """A public random choice of the points."""
        if self.n_queries is None:
            return points
        if _check.count(n_queries=self.n_queries) > len(points):
            raise InputError(f"Expected n_queries to be at most {len(points)}, got {self.n_queries}.")
        order = np.random.default_rng(self.random_state).permutation(len(points))
        return points[np.sort(order[: self.n_queries])]

    def _teach(self, codes: IntArray) -> Self:
        """Train the student on the answers; if all are one class, it says that."""
        self.answers_ = self.classes_[codes]
        self._codes = np.unique(codes)
        self.student_ = None
        if len(self._codes) > 1:
            self.student_ = fitted(_default(self.student), self.queries_, codes, seed=self.random_state)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """The student's probabilities; a class that no answer named has none."""
        check_is_fitted(self)
        rows = _check.matrix(X=X, width=self.n_features_in_)
        found = np.zeros((len(rows), len(self.classes_)))
        found[:, self._codes] = 1.0 if self.student_ is None else self.student_.predict_proba(rows)
        return found

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The student's choice."""
        check_is_fitted(self)
        rows = _check.matrix(X=X, width=self.n_features_in_)
        if self.student_ is None:
            return np.repeat(self.classes_[self._codes], len(rows))
        return self.classes_[np.asarray(self.student_.predict(rows), dtype=np.int64)]


def _default(model: Any) -> Any:
    """Logistic regression, where nothing else is asked for."""
    if model is not None:
        return model
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=10.0, max_iter=500)


__all__ = ["PATE", "TeacherVotes", "fitted"]
