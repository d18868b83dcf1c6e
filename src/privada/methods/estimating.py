"""What all estimators share: one ledger under scikit-learn's API.

An estimator joins both sides in one process. Its private side is an `Owner`, or arrays for which it makes
one (`privada.parties.one_process.holding`). What it states afterwards is always both, the loss of this fit
and the loss of everything that the same rows were used for.
"""

from __future__ import annotations

import copy
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._progress import showing
from privada.exceptions import InputError, PrivacyLeakWarning
from privada.methods.frames import in_order, names_of, refuse_sparse, take_column, without_column
from privada.methods.models.model_file import save_model
from privada.methods.models.model_plot import (
    Flattening,
    Map,
    Numbers,
    PublicRows,
    draw_model,
    show_predictions,
)
from privada.methods.models.onnx_export import export_onnx
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.preprocessing import unpaid_steps
from privada.parties.one_process.holding import (
    Dataset,
    Holding,
    count_persons,
    hold_owner,
    hold_rows,
    read_dataset,
    read_persons,
    require_owner,
    settling,
    state_spent,
    warn_of_earlier_uses,
)
from privada.parties.one_process.process_ledger import Statement
from privada.parties.protocol import Inquiry
from privada.parties.running import run
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import ROW, Unit
from privada.privacy.release import Question, Release

T = TypeVar("T")
DEEPEST = 40  # calls above a fit that are asked whether they are a pipeline's


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that states what its private rows have lost.

    Attributes
    ----------
    guarantee_ : Guarantee
        Of this fit, for the rows of the arrays that it was given.
    spent_ : Guarantee or None
        Of everything that the rows of this fit were used for up to now: in this process, and on the ledger or
        by the owner that was given. Later fits on the same rows are in it, too; answers that an earlier
        process paid for are, where its ledger is given. None for rows that were declared public. Reading it
        raises an `InputError` where fits of this process had different rows that were divided in an unknown
        way: divide by `privada.model_selection.PrivateKFold`, or name each table by
        ``dataset=Dataset(table=...)``.

    Privacy
    -------
    A `PrivacyLeakWarning` says so where this process used one of the rows before. That, and ``spent_``, are
    facts about which rows were used when; keep them with the rows. Proof of ``spent_``:
    ``docs/explanation/accounting.md``, "Rows that are used again".
    """

    schema: Schema | None = None
    bounds: Any = None
    classes: Any = None
    label_bounds: Any = None
    dataset: Dataset | None
    insecure_seed: int | None
    n_features_in_: int
    release_: Release
    guarantee_: Guarantee
    _statement: Statement
    _allow_empty = False  # set by a search: that a secret division left no row to fit on is no public fact

    @property
    def spent_(self) -> Guarantee | None:
        """What everything that the rows of this fit were used for has cost, up to now."""
        if "_statement" not in vars(self):
            raise AttributeError(
                f"This {type(self).__name__} is not fitted yet, or comes from a file: ask whoever fitted it "
                "what its rows have lost."
            )
        return self._statement.read()

    def __sklearn_tags__(self) -> Tags:
        """Noise differs from fit to fit; rows are dense and complete unless a schema says otherwise."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = tags.input_tags.string = self.schema is not None
        return tags

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        """For scikit-learn's diagram, which reads docstrings."""
        read_docstring(inspect.getdoc(type(self)) or "")
        return super()._get_params_html(*args, **options)

    def _get_fitted_attr_html(self, *args: Any, **options: Any) -> Any:
        """For scikit-learn's diagram, which leaves ``spent_`` out where it cannot be stated."""
        shown = self
        with suppress(AttributeError):  # nothing is fitted yet
            try:
                _ = self.spent_
            except InputError:
                shown = copy.copy(self)
                del shown._statement
        return super(PrivateEstimator, shown)._get_fitted_attr_html(*args, **options)

    def _read_frames(self, **tables: Any) -> list[Any]:
        """Public and private rows of a fit as arrays of the same columns, in the order of the arguments.

        Frames are matched by name, and the names are kept; with a schema they are encoded by it.
        """
        tables = {name: self._without_person(rows) for name, rows in tables.items()}
        present = {name: rows for name, rows in tables.items() if rows is not None}
        for name, rows in present.items():
            refuse_sparse(rows, name=name)
        self._keep_names(present)
        return [None if rows is None else self._read_rows(rows, name=name) for name, rows in tables.items()]

    def _keep_names(self, given: Mapping[str, Any]) -> None:
        all_names = [names for rows in given.values() if (names := names_of(rows)) is not None]
        self.__dict__.pop("feature_names_in_", None)
        if self.schema is not None:
            self.feature_names_in_ = np.array([column.name for column in self.schema.columns], dtype=object)
        elif all_names:
            self.feature_names_in_ = np.array(all_names[0], dtype=object)

    def _read_rows(self, rows: Any, *, name: str = "X") -> Any:
        """Rows as an array with the columns of the fit."""
        rows = self._without_person(rows)
        refuse_sparse(rows, name=name)
        if self.schema is not None:
            return self.schema.encode(rows)
        names = getattr(self, "feature_names_in_", None)
        return in_order(rows, None if names is None else tuple(names), name=name)

    def _matrix(self, X: Any) -> npt.NDArray[np.float64]:
        """Rows to predict, checked: columns by name, and as many as the fit had."""
        check_is_fitted(self)
        rows = _check.matrix(X=self._read_rows(X))
        width, expected = rows.shape[1], self.n_features_in_
        if width != expected:
            raise InputError(
                f"Expected X to have {expected} columns, got {width}. (X has {width} features, but "
                f"{type(self).__name__} is expecting {expected} features as input.)"
            )
        return rows

    def _dataset(self) -> Dataset:
        """What is public of the private rows."""
        return read_dataset(self.dataset)

    def _unit(self) -> Unit:
        """What is protected: a row, or a person with at most ``max_rows``."""
        of_schema = None if self.schema is None else self.schema.max_rows
        of_dataset = self._dataset().max_rows
        if None not in (of_schema, of_dataset) and of_schema != of_dataset:
            raise InputError(f"Expected max_rows to be the schema's, {of_schema}, got {of_dataset}.")
        most = of_schema if of_dataset is None else of_dataset
        return ROW if most is None else Unit(name="person", max_rows=most)

    def _read_person(self, person: Any, rows: Any, owner: Any = None) -> npt.NDArray[Any] | None:
        """The person of each private row: given, or a column of the frame, which is no feature then."""
        self.__dict__.pop("person_column_", None)
        if owner is not None:
            check_owner(owner, person=person)
            return None
        if person is None and self.schema is not None and self.schema.person_id is not None:
            person = self.schema.person_id
        if (person is None) != (self._unit() == ROW):
            raise InputError(
                "Expected max_rows and person together: a public bound on the rows of a person, and the "
                "person of each row."
            )
        if person is None:
            return None
        people = take_column(rows, person) if isinstance(person, str) else read_persons(person)
        if isinstance(person, str):
            self.person_column_ = person
        if people.shape != (np.shape(rows)[0],):
            raise InputError("Expected person to have one identifier for each private row.")
        return people

    def _without_person(self, rows: Any) -> Any:
        column = getattr(self, "person_column_", None)
        return rows if column is None else without_column(rows, column)

    def _public_size(self, rows: Any, person: npt.NDArray[Any] | None) -> int:
        """Most rows that may count where sizes are public: of rows, or of persons with ``max_rows`` each."""
        return len(rows) if person is None else count_persons(person) * self._unit().max_rows

    def _bounds(self) -> Any:
        """The public limits of the features: given, or the schema's."""
        if self.bounds is None and self.schema is not None:
            return np.asarray(self.schema.box.low), np.asarray(self.schema.box.high)
        return self.bounds

    def _class_names(self) -> Any:
        """The public list of the labels: given, or the schema's."""
        if self.classes is None and self.schema is not None and self.schema.class_names:
            return self.schema.class_names
        return self.classes

    def _label_limits(self) -> Any:
        """The public limits of the label: given, or the schema's."""
        if self.label_bounds is None and self.schema is not None:
            return self.schema.label_bounds
        return self.label_bounds

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one safe file, which `privada.load` reads; what was spent stays here."""
        return save_model(self, path)

    def to_onnx(self) -> bytes:
        """The fitted model as ONNX: features in their own units, class names in the metadata."""
        if type(self)._add_to_onnx is PrivateEstimator._add_to_onnx:
            raise InputError(f"A {type(self).__name__} has no ONNX form.")
        return export_onnx(self)

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        """Add what `predict` computes to a graph; returns the name of its output."""
        raise NotImplementedError

    def plot(self, X: Any = None) -> Any:
        """A matplotlib figure of what was learnt.

        Needs ``pip install 'privada[plot]'``.

        Parameters
        ----------
        X : array or frame, optional
            **Public** rows to draw beside it, such as the target: they are shown as they are.
        """
        check_is_fitted(self)
        predict = getattr(self, "predict", None)
        rows = None if X is None else PublicRows(self._matrix(X), None if predict is None else predict(X))
        panels = self._panels(rows)
        stamps = "".join(f"  [{stamp}]" for stamp in self.release_.stamps)
        return draw_model(panels, title=f"{type(self).__name__}\n{self.guarantee_}{stamps}")

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """What `plot` shows beside public rows: here, what is predicted of them."""
        if rows is None:
            raise InputError("Expected X, public rows to draw what is predicted of them.")
        plane = self._flattening(rows.at)
        groups = show_predictions(rows, plane, getattr(self, "classes_", None))
        return [Map(title="what is predicted", layers=[], groups=groups, axes=plane.names)]

    def _flattening(self, public: npt.ArrayLike) -> Flattening:
        """How rows of the features are drawn on a plane."""
        names = getattr(self, "feature_names_in_", None)
        return Flattening(public, None if names is None else list(names))

    def _hold(
        self,
        rows: Any,
        questions: Sequence[Question],
        *,
        schema: Schema,
        budget: Guarantee,
        name: str,
        owner: Any = None,
        dataset: str | None = None,
        turn: int = 0,
        allow_empty: bool = False,
        **more: Any,
    ) -> Holding:
        """The private side of a fit: an owner that was given, or rows. ``turn`` numbers it among several."""
        if owner is not None:
            return hold_owner(owner, budget)
        warn_of_unpaid_steps(self)
        about = self._dataset()
        if budget.unit != ROW:
            schema = replace(schema, person_id="person", max_rows=budget.unit.max_rows)
        return hold_rows(
            rows,
            questions,
            schema=schema,
            budget=budget,
            name=name,
            ledger=about.ledger,
            dataset=about.names(1)[0] if dataset is None else dataset,
            table=about.table,
            columns=self._columns(rows),
            insecure_seed=None if self.insecure_seed is None else self.insecure_seed + turn,
            allow_empty=allow_empty or self._allow_empty,
            **more,
        )

    def _columns(self, rows: Any) -> list[str] | None:
        """Names of the columns of private rows; none if a schema has encoded them."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None or len(names) != np.shape(rows)[1] else names.tolist()

    def _ask(self, inquiry: Inquiry[T], held: Mapping[str, Holding]) -> T:
        """Run an inquiry, and state what was spent."""
        salt = next((holding.salt for holding in held.values() if holding.salt), "")
        with self._stating(held.values()), showing(type(self).__name__):
            return run(inquiry.again(salt), {name: holding.owner for name, holding in held.items()})

    @contextmanager
    def _stating(self, held: Iterable[Holding]) -> Iterator[None]:
        """Keep what all uses of the rows cost together, and warn where this was not their first."""
        holdings = tuple(held)
        with settling(holdings):
            yield
            self._statement = state_spent(holdings)
        warn_of_earlier_uses(holdings)


def warn_of_unpaid_steps(estimator: Any) -> None:
    """Warn if a pipeline is fitting this estimator after steps that were fitted to its private rows."""
    frame: FrameType | None = sys._getframe()
    # scikit-learn does not tell an estimator where it stands, so the calls above its ``fit`` are asked.
    for _ in range(DEEPEST):
        if frame is None:
            return
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline) and caller.steps and caller.steps[-1][1] is estimator:
            break
        frame = frame.f_back
    else:
        return
    if unpaid := unpaid_steps(caller):
        warnings.warn(
            f"{', '.join(unpaid)} before {type(estimator).__name__} was fitted to the private rows: what it "
            "learnt of them is in the model and nobody paid for it. Use PublicScaler, or fit it to public "
            "rows and freeze it (make_private_pipeline).",
            PrivacyLeakWarning,
            stacklevel=3,
        )


@cache
def read_docstring(text: str) -> None:
    """Let scikit-learn parse a docstring once, which it keeps, without its warning of a Privacy section."""
    try:
        from sklearn.utils._repr_html.common import scrape_estimator_docstring
    except ImportError:  # before 1.9
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Unknown section")
        scrape_estimator_docstring(text)


def check_owner(owner: Any, **arrays: Any) -> None:
    """Refuse what is not an owner, and private arrays beside one, who has them."""
    if owner is None:
        return
    for party in owner.values() if isinstance(owner, Mapping) else (owner,):
        require_owner(party)
    given_arrays = [name for name, array in arrays.items() if array is not None]
    if given_arrays:
        names = " and ".join(given_arrays)
        raise InputError(f"Expected no {names} beside owner=, who holds the private rows.")


__all__ = ["PrivateEstimator", "check_owner"]
