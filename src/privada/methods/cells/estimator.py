"""Estimators of cells with scikit-learn's API: both sides in one process."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.learner import CellEstimates, learn
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.estimating import PrivateEstimator, check_owner
from privada.methods.models.model_plot import Map, Numbers, PublicRows
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.pictures import Points
from privada.parties.one_process.holding import Dataset
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import Guarantee, make_guarantee


class _Cells(PrivateEstimator):
    """What both estimators share: public cells, public bounds, one question to an owner in memory."""

    def _guarantee(self) -> Guarantee:
        return make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation, unit=self._unit()
        )

    def _schema(self, **rest: Any) -> Schema:
        if (bounds := self._bounds()) is None:
            raise InputError("Expected bounds=(low, high), public limits of the features; none are guessed.")
        size = None if self.relation == "add/remove" else self.size
        return Schema.of_numbers(bounds=bounds, width=np.shape(self.centers)[1], size=size, **rest)

    def _estimate(
        self, X: Any, y: Any, person: Any, schema: Schema, question: CellStatistics, owner: Any
    ) -> CellEstimates:
        held = self._hold(
            X,
            [question],
            y=y,
            person=person,
            schema=schema,
            budget=question.guarantee,
            name="fit",
            owner=owner,
        )
        estimates = self._ask(learn("owner", question), {"owner": held})
        self.release_, self.guarantee_ = estimates.release, estimates.release.guarantee
        self.n_features_in_ = schema.width
        return estimates

    def _cell_names(self) -> list[str]:
        return [f"cell {place}" for place in range(len(self.centers))]

    def _half_width(self, confidence: float) -> float:
        """How far each count may be from the exact one."""
        return next(iter(self.release_.half_widths(confidence).values()))


def share_intervals(counts: FloatArray, half: float) -> FloatArray:
    """Least and largest share of each class in each cell, if every count is within ``half`` of the exact one.

    >>> share_intervals(np.array([[8.0, 2.0]]), 1.0).tolist()
    [[[0.7, 0.1]], [[0.9, 0.3]]]
    """
    least, most = np.maximum(counts - half, 0.0), np.maximum(counts + half, 0.0)
    others_most, others_least = (side.sum(axis=1, keepdims=True) - side for side in (most, least))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = least / (least + others_most), most / (most + others_least)
    return np.stack([np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)])


class CellClassifier(ClassifierMixin, _Cells):  # type: ignore[misc]
    """Classify by private class counts in the cells of public centres.

    Parameters
    ----------
    centers : array of shape (cells, features)
        Public centres, for instance k-means centres of a public source.
    classes : sequence
        Public list of the labels.
    bounds : (low, high)
        Public limits of the features; rows beyond them are clipped.
    epsilon, delta, rho : float
        The guarantee; epsilon and rho exclude each other.
    relation : str
        Neighbouring relation; under "replace-one" ``size`` is public and needed.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

    Attributes
    ----------
    release_, guarantee_, spent_
        What left the owner, its price, and what all uses of these rows cost together.
    probabilities_ : array of shape (cells, classes)

    Privacy
    -------
    Unit: one row. A row touches one count: sensitivity 1 whatever the number
    of features. Proof: privacy.md, section 6.7.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.1], [0.2], [0.9], [0.8]] * 50); y = np.array([0, 0, 1, 1] * 50)
    >>> model = CellClassifier(centers=[[0.0], [1.0]], classes=(0, 1), bounds=(0, 1), epsilon=1)
    >>> model.fit(X, y).predict([[0.05], [0.95]]).tolist()
    [0, 1]
    >>> print(model.guarantee_)
    ε = 1 (pure), add/remove one row
    """

    def __init__(
        self,
        centers: Any = None,
        *,
        classes: Any = None,
        bounds: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        size: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.centers = centers
        self.classes = classes
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.size = size
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(self, X: Any = None, y: Any = None, *, person: Any = None, owner: Any = None) -> Self:
        """Count classes in cells, privately; of private rows ``X, y``, or of an `Owner` in their place.

        ``person`` has the person of each row, or names a column of the frame ``X``,
        beside a `Dataset` with ``max_rows``.
        """
        check_owner(owner, X=X, y=y)
        person = self._read_person(person, X, owner)
        (X,) = self._read_frames(X=X)
        centers = _check.matrix(centers=self.centers)
        if self.classes is None:
            raise InputError("Expected classes, the public list of labels; none are taken from y.")
        schema = self._schema(label=Category(name="label", values=tuple(self.classes)))
        question = CellStatistics(
            tables=(NearestCells(centers=centers),),
            n_classes=len(schema.classes),
            guarantee=self._guarantee(),
        )
        estimates = self._estimate(np.asarray(X), np.asarray(y), person, schema, question, owner)
        keep_counts(self, estimates, classes=schema.classes.names)
        return self

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """Where each class is likely, and its share in each cell."""
        centers, likely = np.asarray(self.centers), self.classes_[self.probabilities_.argmax(axis=1)]
        plane = self._flattening(centers)
        shown = [] if rows is None else [Points(name="rows (public)", at=plane.apply(rows.at))]
        words = Points(name="cells", at=plane.apply(centers), names=[str(each) for each in likely])
        half = self._half_width(1 - 0.05 / len(self.classes_))
        shares = Numbers(
            title="share of each class (95 % intervals of the noise)",
            names=self._cell_names(),
            values=self.probabilities_,
            ends=share_intervals(self.counts_, half),
            series=[str(name) for name in self.classes_],
        )
        return [Map(title="most likely class", layers=[*shown, words], axes=plane.names), shares]

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        cells = graph.nearest(graph.rows, self.centers)
        return graph.apply("Gather", graph.constant(self.probabilities_), cells, axis=0)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Class probabilities of each row's cell."""
        check_is_fitted(self)
        rows = self._matrix(X)
        cells = NearestCells(centers=self.centers).assign(rows)
        return self.probabilities_[cells]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of each row's cell."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]


class CellMeans(_Cells):
    """Private counts and means in the cells of public centres: one step of k-means, soundly.

    Parameters
    ----------
    centers, bounds, epsilon, delta, rho, relation, size, insecure_seed, dataset, schema
        As in `CellClassifier`.
    norm_bound : float
        Public radius around each centre to which rows are clipped.

    Attributes
    ----------
    counts_, means_
        Noisy counts and projected means of the cells.

    Privacy
    -------
    Unit: one row, which touches one count and one sum of norm at most
    ``norm_bound``. Proof: privacy.md, section 1 (c).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.1], [0.3], [0.7], [0.9]] * 100)
    >>> model = CellMeans(centers=[[0.0], [1.0]], bounds=(0, 1), norm_bound=0.5, epsilon=4, insecure_seed=0)
    >>> import warnings; warnings.simplefilter("ignore")
    >>> model.fit(X).means_.round(1).tolist()
    [[0.2], [0.8]]
    """

    def __init__(
        self,
        centers: Any = None,
        *,
        bounds: Any = None,
        norm_bound: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        size: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.centers = centers
        self.bounds = bounds
        self.norm_bound = norm_bound
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.size = size
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(
        self,
        X: Any = None,
        y: Any = None,  # noqa: ARG002 - scikit-learn's
        *,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Count and sum in cells, privately; of private rows ``X``, or of an `Owner` in their place.

        ``person`` has the person of each row, or names a column of the frame ``X``,
        beside a `Dataset` with ``max_rows``.
        """
        check_owner(owner, X=X)
        person = self._read_person(person, X, owner)
        (X,) = self._read_frames(X=X)
        centers = _check.matrix(centers=self.centers)
        if self.norm_bound is None:
            raise InputError("Expected norm_bound, a public radius; none is guessed.")
        question = CellStatistics(
            tables=(NearestCells(centers=centers),),
            radius=self.norm_bound,
            recentred=True,
            width=centers.shape[1],
            guarantee=self._guarantee(),
        )
        estimates = self._estimate(np.asarray(X), None, person, self._schema(), question, owner)
        self.counts_ = estimates.tables[0].counts
        self.means_ = estimates.tables[0].means
        return self

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """Where the rows of each cell are, and how many."""
        centers, half = np.asarray(self.centers), self._half_width(0.95)
        plane, counts = self._flattening(centers), self.counts_[:, None]
        shown = [] if rows is None else [Points(name="rows (public)", at=plane.apply(rows.at))]
        shown.append(Points(name="centres (public)", at=plane.apply(centers), role="limit"))
        shown.append(Points(name="private means", at=plane.apply(self.means_), role="result"))
        numbers = Numbers(
            title="rows in each cell (95 % intervals of the noise)",
            names=self._cell_names(),
            values=counts,
            ends=np.stack([counts - half, counts + half]),
        )
        return [Map(title="private means", layers=shown, axes=plane.names), numbers]


def keep_counts(model: CellClassifier, found: CellEstimates, *, classes: tuple[Any, ...]) -> None:
    """Give a classifier what was learnt: here, or in a study."""
    model.classes_ = np.asarray(classes)
    model.counts_, model.probabilities_ = found.tables[0].counts, found.tables[0].probabilities
    model.release_, model.guarantee_ = found.release, found.release.guarantee


__all__ = ["CellClassifier", "CellMeans", "keep_counts"]
