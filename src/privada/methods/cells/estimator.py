"""Estimators of cells with scikit-learn's API: both sides in one process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privada._arrays import AnyArray, FloatArray
from privada.exceptions import InputError
from privada.methods.cells.learner import CellEstimates
from privada.methods.cells.method import Cells, make_tables
from privada.methods.cells.questions.partition import Partition
from privada.methods.method import Method, Public
from privada.methods.method_estimator import MethodEstimator
from privada.methods.models.model_plot import Map, Numbers, PublicRows
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.pictures import Points
from privada.methods.sides import PrivateRows
from privada.parties.schema import Category, Number, Schema
from privada.privacy.relation import Relation


class _Cells(MethodEstimator):
    """What both estimators share: one table of public cells, and the counts and means in them."""

    hidden = ("by_label",)  # it tells them apart

    def _announced_size(self, rows: PrivateRows) -> int | None:  # noqa: ARG002 - none is guessed
        return None if self.relation == Relation.ADD_REMOVE else self.size

    def _schemas(self, parts: tuple[PrivateRows, ...], public: Public) -> dict[str, Schema]:
        schemas = super()._schemas(parts, public)
        if self.bins is None:
            return schemas
        # Bins are given by the names of a frame's columns, which the schema of an array does not have.
        ((owner, schema),) = schemas.items()
        columns = [
            Number(name=name, low=low, high=high)
            for name, low, high in zip(
                self._features(schema.width), schema.box.low, schema.box.high, strict=True
            )
        ]
        return {owner: replace(schema, columns=tuple(columns))}

    def _features(self, width: int) -> tuple[str, ...]:
        """Names of the encoded features, by which bins may be given."""
        if self.schema is not None:
            return self.schema.features
        names = getattr(self, "feature_names_in_", None)
        return tuple(f"x{place}" for place in range(width)) if names is None else tuple(names)

    def _method(self) -> Method:
        if self.bins is not None and len(self.bins) != 1:
            raise InputError("Expected bins of one feature: an estimator has one cell for each row.")
        method = super()._method()
        assert isinstance(method, Cells)
        return replace(method, by_label=isinstance(self, CellClassifier))

    def _cells(self) -> Partition:
        """The cells of rows that are as those of the fit."""
        (cells,) = make_tables(self.centers, self.bins, self._features(self.n_features_in_))
        return cells

    def _keep(self, model: CellEstimates, schema: Schema) -> None:  # noqa: ARG002 - a classifier needs it
        (table,) = model.tables
        self.counts_ = table.counts
        if table.sums is not None:
            self.means_ = table.means
        self.release_, self.guarantee_ = model.release, model.release.guarantee

    def _half_width(self, confidence: float) -> float:
        """How far each count may be from the exact one."""
        return next(iter(self.release_.half_widths(confidence).values()))

    def _cell_names(self) -> list[str]:
        """Names of the cells in a picture: centres are numbered, bins are named by their ends."""
        if self.centers is None:
            return self._cells().cell_names(self._features(self.n_features_in_))
        return [f"cell {place}" for place in range(len(self.centers))]

    def _map(self, rows: PublicRows | None, title: str, *layers: Points) -> list[Map | Numbers]:
        """A map of what is at centres or means, above public rows; bins are not on a plane."""
        if self.centers is None:
            return []
        plane = self._flattening(np.asarray(self.centers))
        public = [] if rows is None else [Points(name="rows (public)", at=rows.at)]
        drawn = [replace(points, at=plane.apply(points.at)) for points in (*public, *layers)]
        return [Map(title=title, layers=drawn, axes=plane.names)]


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
    """Classify by private class counts in the cells of public centres, or in the bins of one feature.

    Attributes
    ----------
    release_, guarantee_, spent_
        What left the owner, its price, and what all uses of these rows cost together.
    classes_, counts_, probabilities_ : array
        The classes; noisy counts and probabilities of each class in each cell.
    means_ : array of shape (cells, features)
        Means of the cells' rows, with ``radius`` only.

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

    method_type = Cells
    shared = (
        *("epsilon", "delta", "rho", "classes", "bounds", "relation", "size"),
        *("insecure_seed", "dataset", "schema"),
    )
    positional = ("centers",)

    def fit(self, X: Any = None, y: Any = None, *, person: Any = None, owner: Any = None) -> Self:
        """Count classes in cells, privately; of private rows ``X, y``, or of an `Owner` in their place.

        ``person`` has the person of each row, or names a column of the frame ``X``,
        beside a `Dataset` with ``max_rows``.
        """
        return self._fit(X, y, person=person, owner=owner)

    def _label(self, public: Public) -> Category:  # noqa: ARG002 - there are no public rows
        classes = self._class_names()
        if classes is None:
            raise InputError("Expected classes, the public list of labels; none are taken from y.")
        return Category(name="label", values=tuple(classes))

    def _keep(self, model: CellEstimates, schema: Schema) -> None:
        super()._keep(model, schema)
        self.classes_ = np.asarray(schema.classes.names)
        self.probabilities_ = model.tables[0].probabilities

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """Where each class is likely, and its share in each cell."""
        likely = [str(name) for name in self.classes_[self.probabilities_.argmax(axis=1)]]
        shares = Numbers(
            title="share of each class (95 % intervals of the noise)",
            names=self._cell_names(),
            values=self.probabilities_,
            # A share depends on the counts of all classes, which are in their intervals together.
            ends=share_intervals(self.counts_, self._half_width(1 - 0.05 / len(self.classes_))),
            series=[str(name) for name in self.classes_],
        )
        cells = Points(name="cells", at=np.asarray(self.centers), names=likely)
        return [*self._map(rows, "most likely class", cells), shares]

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        if self.centers is None:
            raise InputError("A CellClassifier of bins has no ONNX form; one of centers has.")
        cells = graph.nearest(graph.rows, self.centers)
        return graph.apply("Gather", graph.constant(self.probabilities_), cells, axis=0)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of each row's cell."""
        check_is_fitted(self)
        rows = self._matrix(X)
        return self.probabilities_[self._cells().assign(rows)]

    def predict(self, X: Any) -> AnyArray:
        """Most likely class of each row's cell."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]


class CellMeans(_Cells):
    """Private counts and means in the cells of public centres: one step of k-means, soundly.

    Attributes
    ----------
    counts_, means_
        Noisy counts and projected means of the cells.

    Privacy
    -------
    Unit: one row, which touches one count and one sum of norm at most
    ``radius``. Proof: privacy.md, section 1 (c).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.1], [0.3], [0.7], [0.9]] * 100)
    >>> model = CellMeans(centers=[[0.0], [1.0]], bounds=(0, 1), radius=0.5, epsilon=4, insecure_seed=0)
    >>> import warnings; warnings.simplefilter("ignore")
    >>> model.fit(X).means_.round(1).tolist()
    [[0.2], [0.8]]
    """

    method_type = Cells
    shared = (
        *("epsilon", "delta", "rho", "bounds", "relation", "size"),
        *("insecure_seed", "dataset", "schema"),
    )
    defaults: ClassVar[dict[str, Any]] = {"recentred": True}
    positional = ("centers",)

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
        if self.radius is None:
            raise InputError("Expected radius, a public bound on the norm of rows; none is guessed.")
        return self._fit(X, None, person=person, owner=owner)

    def _label(self, public: Public) -> None:
        """Rows are counted whatever their label is."""

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """Where the rows of each cell are, and how many."""
        counts, half = self.counts_[:, None], self._half_width(0.95)
        numbers = Numbers(
            title="rows in each cell (95 % intervals of the noise)",
            names=self._cell_names(),
            values=counts,
            ends=np.stack([counts - half, counts + half]),
        )
        centers = Points(name="centres (public)", at=np.asarray(self.centers), role="limit")
        means = Points(name="private means", at=self.means_, role="result")
        return [*self._map(rows, "private means", centers, means), numbers]


__all__ = ["CellClassifier", "CellMeans"]
