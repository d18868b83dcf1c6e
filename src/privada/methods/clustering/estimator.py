"""The scikit-learn estimator of source-target clustering: both sides in one process."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import IntArray
from privada.methods.clustering.learner.learn import Choice
from privada.methods.clustering.method import Clustering
from privada.methods.forecast import Forecast
from privada.methods.method import Public
from privada.methods.method_estimator import MethodEstimator
from privada.methods.models.model_plot import Map, Numbers, PublicRows
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.pictures import Points
from privada.methods.sides import PrivateRows
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import Relation


class SourceTargetMedoids(ClusterMixin, MethodEstimator):  # type: ignore[misc]
    """Choose target points that serve the target best, given a source that may not be seen.

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
    question_, release_, releases_, guarantee_, spent_
        What was asked, its answer, all that left the owner, its price, and what all uses of the source cost
        together.

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
    _allow_empty = True  # the number of source rows is private
    method_type = Clustering
    shared = (
        *("epsilon", "delta", "rho", "relation"),
        *("random_state", "insecure_seed", "dataset", "schema"),
    )
    docs: ClassVar[dict[str, str]] = {
        "relation": 'The neighbouring relation; under "replace-one" ``source_size`` is public and needed.'
    }
    positional = ("n_centers",)
    party = "source"

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
        return self._fit(X, None, Xt=Xt, sample_domain=sample_domain, person=person, owner=owner)

    def _guarantee(self) -> Guarantee:
        """What the fit may cost: that of a question of your own, if nothing is asked beside it."""
        if self.question is not None and not self.bound_share:
            guarantee: Guarantee = self.question.guarantee
            return guarantee
        return super()._guarantee()

    def _label(self, public: Public) -> None:  # noqa: ARG002 - no labels are read
        return None

    def _limits(self, public: Public) -> tuple[float, float]:  # noqa: ARG002 - those of the ball
        radius = Clustering(norm_bound=self.norm_bound).ball().radius
        return -radius, radius

    def _announced_size(self, rows: PrivateRows) -> int | None:  # noqa: ARG002 - it is announced by name
        return None if self._guarantee().relation is Relation.ADD_REMOVE else self.source_size

    def _keep(self, model: Choice, schema: Schema) -> None:  # noqa: ARG002 - no column is needed
        self.indices_, self.cluster_centers_ = model.indices, model.centers
        self.cost_, self.cost_band_ = model.cost, model.cost_band
        self.cost_bound_, self.difference_bound_ = model.bound.cost, model.bound.difference
        self.unavoidable_error_, self.source_ = model.unavoidable, model.source
        self.question_, self.guarantee_ = model.question, model.guarantee
        self.releases_, self.release_ = model.releases, model.release

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        return graph.nearest(graph.rows, self.cluster_centers_)

    def predict(self, X: Any) -> IntArray:
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
        schema = Schema.of_numbers(bounds=self._limits(Public()), width=points.shape[1])
        forecast: Forecast = (
            self._method().prepare(Public(points), {"owner": schema}, self._guarantee()).forecast
        )
        return forecast


__all__ = ["SourceTargetMedoids"]
