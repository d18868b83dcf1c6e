"""The scikit-learn estimator of source-target clustering: both sides in one process."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, PrivadaWarning
from privada.methods.clustering.learner.learn import (
    GUESSED_SIZE,
    Choice,
    default_question,
    forecast_gain,
    learn,
)
from privada.methods.clustering.questions.means import SourceRadius
from privada.methods.domains import private_persons, split_domains
from privada.methods.estimating import PrivateEstimator, check_owner
from privada.methods.forecast import Forecast
from privada.methods.models.model_plot import Map, Numbers, PublicRows
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.pictures import Points
from privada.parties.one_process.holding import Dataset, Holding
from privada.parties.schema import Schema
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import Guarantee, make_guarantee, split_alike
from privada.privacy.release import Question

KEEP_BUDGET = (
    "The release is not expected to improve on choosing by the public target alone (see forecast_). "
    "Consider keeping the budget, or a larger one."
)


class SourceTargetMedoids(ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """Choose target points that serve the target best, given a source that may not be seen.

    Parameters
    ----------
    n_centers : int, default=8
        How many target points to choose.
    norm_bound : float
        Radius of the public ball around 0 that holds source and target. Source rows beyond it
        are clipped; none is guessed.
    epsilon, delta, rho : float
        The guarantee for the source; epsilon and rho exclude each other.
    relation : str, default="add/remove"
        Neighbouring relation; under "replace-one" ``source_size`` is public and needed.
    source_size : int, optional
        Announced size of the source; helps to choose the question in many dimensions.
    question : Question, optional
        Ask this instead of the default, for instance a `NearestMeans`.
    bound_share : float
        Share of the budget that is spent on Δᵗ(S), the mean distance of the target to its
        ``bound_neighbours`` nearest source rows, to sharpen ``cost_bound_``; 0 spends nothing.
    bound_neighbours : int, default=10
        t of Δᵗ(S): more are less noise and a looser bound.
    confidence : float, default=0.95
        Probability with which ``cost_bound_`` holds.
    n_draws : int, default=32
        Over how many plausible sources the choice is averaged.
    random_state : int, optional
        For public randomness only.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values.

    Attributes
    ----------
    indices_, cluster_centers_
        The chosen target points.
    forecast_ : Forecast
        What was expected before anything was spent; see `forecast`.
    cost_ : float
        Expected mean distance of the target to the nearest of source and chosen, given the release.
    cost_band_ : pair of float, or None
        Holds the true cost in four cases of five; None for questions other than the defaults.
    cost_bound_ : float
        The cost on the true source is at most this, with ``confidence``.
    difference_bound_ : float or None
        Costs on sanitised and true source differ by at most this for every choice, where a
        theorem says so (`privada.methods.clustering.learner.bounds`).
    unavoidable_error_ : LowerBound
        On some target of this size and some source, every method with this guarantee costs so much more
        than the best choice, with at least this probability
        (`privada.methods.clustering.learner.bounds`).
    source_ : array
        One synthetic source that the release makes plausible.
    question_, release_, guarantee_, spent_
        What was asked, what left the owner, its price, and what all uses of the source cost together.

    Privacy
    -------
    Unit: one source row. The target is public. The question is chosen from the target, k and the
    guarantee alone. Proofs: the question's own docstring.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> target = rng.uniform(-0.3, 0.3, size=(200, 2))
    >>> source = target[target[:, 0] < 0].repeat(20, axis=0)       # the left half is served already
    >>> model = SourceTargetMedoids(n_centers=4, norm_bound=0.5, epsilon=3, random_state=0)
    >>> bool(np.all(model.fit(source, Xt=target).cluster_centers_[:, 0] > 0))
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}

    def __init__(
        self,
        n_centers: int = 8,
        *,
        norm_bound: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        source_size: int | None = None,
        question: Question | None = None,
        bound_share: float = 0.0,
        bound_neighbours: int = 10,
        confidence: float = 0.95,
        n_draws: int = 32,
        random_state: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.n_centers = n_centers
        self.norm_bound = norm_bound
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.source_size = source_size
        self.question = question
        self.bound_share = bound_share
        self.bound_neighbours = bound_neighbours
        self.confidence = confidence
        self.n_draws = n_draws
        self.random_state = random_state
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(
        self,
        X: Any = None,
        y: Any = None,  # noqa: ARG002 - scikit-learn's and POT's signature
        Xt: Any = None,
        yt: Any = None,  # noqa: ARG002
        *,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Choose centres.

        Give the private source as ``X`` and the public target as ``Xt`` (POT's form), or both in
        ``X`` with ``sample_domain``, positive for source and negative for target (skada's form); or the
        target as ``Xt`` and the source's `Owner` as ``owner``. ``person`` has the person of each row of
        ``X``, or names a column of that frame, beside a `Dataset` with ``max_rows``.
        """
        check_owner(owner, X=X, sample_domain=sample_domain)
        person = private_persons(self._read_person(person, X, owner), sample_domain, sign=1)
        Xt, X = self._read_frames(Xt=Xt, X=X)
        if owner is None:
            domains = split_domains(X, Xt=Xt, sample_domain=sample_domain)
            source, target = domains.source.X, _check.matrix(target=domains.target.X)
        else:
            source, target = None, _check.matrix(target=Xt)
        question, radius = self._question(target), self._radius(target)
        self.forecast_ = self._forecast(question, target)
        if not self.forecast_.worthwhile:
            warnings.warn(KEEP_BUDGET, PrivadaWarning, stacklevel=2)
        budget = question.guarantee if radius is None else self._guarantee()
        asked = [question] if radius is None else [question, radius]
        held = self._hold_source(source, person, target.shape[1], asked, budget, owner)
        choice = self._ask(
            learn(
                "owner",
                target,
                question,
                n_centers=self.n_centers,
                n_draws=self.n_draws,
                radius=radius,
                confidence=self.confidence,
                random_state=self.random_state,
            ),
            {"owner": held},
        )
        self.question_, self.guarantee_ = question, budget
        self.n_features_in_ = target.shape[1]
        keep_choice(self, choice)
        return self

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        return graph.nearest(graph.rows, self.cluster_centers_)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Index of the nearest chosen centre of each row."""
        check_is_fitted(self)
        from privada.methods.cells.questions.partition import NearestCells

        return NearestCells(centers=self.cluster_centers_).assign(self._matrix(X))

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """The chosen points, beside the target, if that is given, and a source that is plausible."""
        plane = self._flattening(self.cluster_centers_ if rows is None else rows.at)
        name = "plausible source (synthetic)"
        layers = [Points(name=name, at=plane.apply(self.source_), role="limit")]
        layers += [] if rows is None else [Points(name="target (public)", at=plane.apply(rows.at))]
        layers.append(Points(name="chosen points", at=plane.apply(self.cluster_centers_), role="result"))
        title = f"chosen points: mean distance {self.cost_:.3g}"
        return [Map(title=title, layers=layers, axes=plane.names)]

    def forecast(self, target: Any) -> Forecast:
        """Expected cost over that of choosing by the public target alone, before anything is spent.

        Uses ``source_size`` if it is given; else it guesses the target's size, and at least 400 rows.
        """
        points = _check.matrix(target=self._read_rows(target, name="target"))
        return self._forecast(self._question(points), points)

    def _forecast(self, question: Question, target: FloatArray) -> Forecast:
        size = self.source_size or max(len(target), GUESSED_SIZE)
        return forecast_gain(question, width=target.shape[1], size=size)

    def _guarantee(self) -> Guarantee:
        return make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation, unit=self._unit()
        )

    def _question(self, target: FloatArray) -> Question:
        if self.norm_bound is None:
            raise InputError("Expected norm_bound, the radius of a public ball; none is guessed.")
        inside = Ball(radius=_check.positive(norm_bound=self.norm_bound)).clip(target)
        if not np.allclose(inside, target, rtol=0, atol=1e-9 * self.norm_bound):
            raise InputError(
                f"Expected the target inside the ball of norm_bound={self.norm_bound:g} around 0."
            )
        _check.count(least=0, n_centers=self.n_centers)
        if self.n_centers > len(target):
            raise InputError(
                f"Expected n_centers to be at most the {len(target)} target points, got {self.n_centers}."
            )
        if self.question is not None:
            if self.bound_share and not self.question.guarantee <= self._parts()[0]:
                raise InputError(
                    f"Expected the question to leave bound_share={self.bound_share:g} of "
                    f"{self._guarantee()}; it costs {self.question.guarantee}."
                )
            return self.question
        return default_question(
            target,
            n_centers=self.n_centers,
            guarantee=self._parts()[0],
            radius=self.norm_bound,
            source_size=self.source_size,
        )

    def _parts(self) -> tuple[Guarantee, Guarantee | None]:
        """What the question and, if it is asked, Δᵗ(S) may cost."""
        whole = self._guarantee()
        share = _check.probability(bound_share=self.bound_share) if self.bound_share else 0.0
        if not share:
            return whole, None
        bounding, asking = split_alike(whole, share)
        return asking, bounding

    def _radius(self, target: FloatArray) -> SourceRadius | None:
        _check.probability(confidence=self.confidence)
        guarantee = self._parts()[1]
        if guarantee is None:
            return None
        assert self.norm_bound is not None
        t = _check.count(bound_neighbours=self.bound_neighbours)
        return SourceRadius(targets=target, t=t, radius=self.norm_bound, guarantee=guarantee)

    def _hold_source(
        self,
        source: Any,
        person: Any,
        width: int,
        questions: list[Question],
        budget: Guarantee,
        owner: Any,
    ) -> Holding:
        assert self.norm_bound is not None
        size = None if budget.relation == "add/remove" else self.source_size
        schema = Schema.of_numbers(bounds=(-self.norm_bound, self.norm_bound), width=width, size=size)
        return self._hold(
            source,
            questions,
            person=person,
            schema=schema,
            budget=budget,
            name="source",
            owner=owner,
            allow_empty=True,
        )


def keep_choice(model: SourceTargetMedoids, choice: Choice) -> None:
    """Give an estimator what was chosen: here, or in a study."""
    model.indices_, model.cluster_centers_ = choice.indices, choice.centers
    model.cost_, model.cost_band_ = choice.cost, choice.cost_band
    model.cost_bound_, model.difference_bound_ = choice.bound.cost, choice.bound.difference
    model.unavoidable_error_ = choice.unavoidable
    model.source_, model.release_ = choice.source, choice.release


__all__ = ["SourceTargetMedoids", "keep_choice"]
