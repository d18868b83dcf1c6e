"""The public schema: columns, bounds, categories, classes, declared size, unit.

Both sides encode rows by the schema alone, so categories, missing values and
bounds mean the same to owner and learner, and nothing is inferred from private
rows. An error names the column, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada._toml import Section
from privada.exceptions import InputError, SchemaError
from privada.parties import tables
from privada.parties.columns import Category, Coded, Column, Date, Number, is_missing, read_column
from privada.privacy.bounds import Box, Classes
from privada.privacy.relation import ROW, Unit

MOST_ROWS = 10**15


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What anyone may know about a data set without seeing a row.

    Parameters
    ----------
    columns : sequence of Column
        As `Number`, `Date` and `Category`.
    label : Number or Category, optional
        The column to predict; a category's values are the classes.
    size : int, optional
        Declared number of rows. Under replace-one it must be the true one;
        under add/remove it is a number that the owner chose to publish.
    person_id, max_rows : str and int, optional
        Makes the unit a person with at most ``max_rows`` rows.

    Examples
    --------
    >>> schema = Schema(columns=[Number(name="age", low=0, high=120)],
    ...                 label=Category(name="ill", values=("no", "yes")))
    >>> schema.width, schema.classes.names
    (1, ('no', 'yes'))
    """

    columns: tuple[Column, ...]
    label: Column | None = None
    size: int | None = None
    person_id: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        names += [self.label.name] if self.label else []
        names += [self.person_id] if self.person_id else []
        if not self.columns:
            raise SchemaError("A schema needs at least one column.")
        if self.label is not None and not self.label.label_role:
            kind = type(self.label).__name__.lower()
            raise SchemaError(f"The label {self.label.name!r} is a {kind}; declare a number or a category.")
        if len(set(names)) != len(names):
            raise SchemaError(f"Expected every column name once, got {names}.")
        for name in ("size", "max_rows"):
            if getattr(self, name) is not None and _check.count(**{name: getattr(self, name)}) > MOST_ROWS:
                raise SchemaError(f"Expected {name} of at most {MOST_ROWS:,}.")
        if (self.person_id is None) != (self.max_rows is None):
            raise SchemaError(
                "person_id and max_rows belong together: a person needs a public bound on rows."
            )

    @classmethod
    def of_numbers(
        cls, *, bounds: tuple[npt.ArrayLike, npt.ArrayLike], width: int | None = None, **rest: Any
    ) -> Schema:
        """A schema of unnamed numeric columns from public ``bounds=(low, high)``."""
        low, high = (np.asarray(side, dtype=np.float64) for side in bounds)
        if width is None and low.ndim == high.ndim == 0:
            raise InputError("Expected width beside scalar bounds, or bounds for every column.")
        shape = (width,) if width is not None else np.broadcast_shapes(low.shape, high.shape)
        pairs = zip(np.broadcast_to(low, shape), np.broadcast_to(high, shape), strict=True)
        columns = tuple(Number(name=f"x{i}", low=float(a), high=float(b)) for i, (a, b) in enumerate(pairs))
        return cls(columns=columns, **rest)

    @property
    def width(self) -> int:
        """Number of features after encoding."""
        return len(self.features)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features after encoding."""
        return tuple(name for column in self.columns for name in column.features())

    @property
    def box(self) -> Box:
        """Public bounds of the features after encoding."""
        limits = [limit for column in self.columns for limit in column.limits()]
        return Box(low=tuple(a for a, _ in limits), high=tuple(b for _, b in limits))

    @property
    def classes(self) -> Classes:
        """The label's classes."""
        if not self.class_names:
            raise InputError("This schema has no class label; declare one as a Category.")
        return Classes(self.class_names)

    @property
    def class_names(self) -> tuple[Any, ...]:
        """The label's classes by name; empty unless the label has classes."""
        has_classes = self.label is not None and self.label.label_role == "classes"
        return getattr(self.label, "values", ()) if has_classes else ()

    @property
    def label_bounds(self) -> tuple[float, float] | None:
        """The label's bounds if it is a number, else None."""
        if self.label is None or self.label.label_role != "number":
            return None
        return self.label.low, self.label.high

    @property
    def unit(self) -> Unit:
        """A row, or a person."""
        return ROW if self.max_rows is None else Unit(name="person", max_rows=self.max_rows)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names that a table must have."""
        label = (self.label.name,) if self.label else ()
        person = (self.person_id,) if self.person_id else ()
        return (*(column.name for column in self.columns), *label, *person)

    def needed_for(self, features: frozenset[int] | None, *, label: bool) -> tuple[str, ...]:
        """Names of the columns of some features (None: of all), the label if it is needed, and the person.

        >>> schema = Schema(columns=[Category(name="ward", values=("a", "b")),
        ...                          Number(name="age", low=0, high=120)])
        >>> schema.needed_for(frozenset({2}), label=True)
        ('age',)
        """
        if features is not None:
            ends = self._ends
            places = {int(np.searchsorted(ends, feature, side="right")) for feature in features}
        else:
            places = set(range(len(self.columns)))
        chosen = {self.columns[place].name for place in places or {0}} | {self.person_id}
        chosen |= {self.label.name} if self.label and label else set()
        return tuple(name for name in self.needed if name in chosen)

    def encode(self, frame: Any) -> FloatArray:
        """Features of rows, encoded as an owner encodes its own; a learner encodes its public rows by this.

        Parameters
        ----------
        frame : pandas or polars frame, Arrow table, mapping of columns, or array
            Columns are found by name, those of an array by place; others are ignored.

        Returns
        -------
        array of shape (rows, width)
            Within the public bounds: numbers and dates beyond them are clipped.

        >>> schema = Schema(columns=[Number(name="age", low=0, high=120),
        ...                          Category(name="ward", values=("a", "b"))])
        >>> schema.encode({"ward": ["b", "a"], "age": [130, 40]}).tolist()
        [[120.0, 0.0, 1.0], [40.0, 1.0, 0.0]]
        """
        names = tuple(column.name for column in self.columns)
        return self.encode_features(tables.read_frame(frame, names, coded=self.coded))

    def encode_label(self, frame: Any) -> npt.NDArray[Any]:
        """Labels of rows: the code of each row's class, or clipped numbers."""
        if self.label is None:
            raise InputError("This schema has no label.")
        return self.encode_labels(tables.read_frame(frame, (self.label.name,), coded=self.coded))

    def encode_features(self, table: Mapping[str, Any]) -> FloatArray:
        """Features of columns that are arrays already, in one array that is row by row in memory."""
        parts = [column.encode(table[column.name]) for column in self.columns]
        X = np.empty((len(parts[0]), self.width))
        np.concatenate(parts, axis=1, out=X)
        return X

    def encode_labels(self, table: Mapping[str, Any]) -> npt.NDArray[Any]:
        """Labels of columns that are arrays already."""
        assert self.label is not None
        return self.label.encode_label(table[self.label.name])

    def decode(self, X: npt.ArrayLike) -> Any:
        """Rows of features as an Arrow table of the schema's columns.

        A category is that of the largest feature, a whole number is rounded, and a value is missing if its
        mark is above one half; so centres and other means of rows can be decoded, too. Encoding the table
        again gives the same features for rows that were encoded before.

        >>> schema = Schema(columns=[Category(name="ward", values=("a", "b"))])
        >>> schema.decode([[0.3, 0.7]]).to_pydict()
        {'ward': ['b']}
        """
        features = np.asarray(X, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] != self.width:
            raise InputError(f"Expected rows of {self.width} features, got an array of {features.shape}.")
        parts = zip(self.columns, np.split(features, self._ends[:-1], axis=1), strict=True)
        return tables.make_arrow({column.name: column.decode(part) for column, part in parts})

    @property
    def _ends(self) -> Any:
        """For each column, the number of features up to its last one."""
        return np.cumsum([len(column.features()) for column in self.columns])

    @property
    def coded(self) -> frozenset[str]:
        """Names of the columns that are read by their distinct values, the label among them."""
        return frozenset(column.name for column in self.described if column.is_coded)

    @property
    def described(self) -> tuple[Column, ...]:
        """All columns that are described: features and label."""
        return (*self.columns, *((self.label,) if self.label else ()))

    def to_dict(self) -> dict[str, Any]:
        """Plain form: everything in it is public."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "label": self.label.to_dict() if self.label else None,
            "size": self.size,
            "person_id": self.person_id,
            "max_rows": self.max_rows,
        }

    @classmethod
    def from_section(cls, section: Section) -> Schema:
        """Read ``[schema]`` of an owner's or a study's file."""
        label = section.section("label") if "label" in section else None
        try:
            schema = cls(
                columns=tuple(read_column(part) for part in section.sections("columns")),
                label=read_column(label) if label else None,
                size=section.whole("size", None),
                person_id=section.string("person_id", None),
                max_rows=section.whole("max_rows", None),
            )
        except SchemaError as error:
            section.fail("", str(error))
        section.done()
        return schema


def make_dummy_rows(schema: Schema, *, rows: int = 100, random_state: int = 0) -> Any:
    """Rows made of a schema alone, so that a learner can develop before it asks; each value is drawn evenly.

    Parameters
    ----------
    schema : Schema
        The public description.
    rows : int, default=100
        How many rows.
    random_state : int, default=0
        Seed of the public generator; the same seed gives the same rows.

    Returns
    -------
    pyarrow.Table

    Privacy
    -------
    No private row is read, so nothing is charged. The rows say nothing about the owner's: columns are
    drawn independently and evenly, whatever their true distribution and relation is.

    Examples
    --------
    >>> schema = Schema(columns=[Number(name="age", low=0, high=120)],
    ...                 label=Category(name="ill", values=("no", "yes")))
    >>> make_dummy_rows(schema, rows=3).column_names
    ['age', 'ill']
    """
    count = _check.count(rows=rows)
    if count > 10_000_000:
        raise InputError(f"Expected rows of at most 10,000,000, got {count}.")
    rng = np.random.default_rng(_check.count(least=0, random_state=random_state))
    columns = {column.name: column.draw_rows(count, rng) for column in schema.columns}
    if schema.label is not None:  # which is never missing; a column type is a data class
        label = replace(schema.label, missing=False)  # type: ignore[type-var]
        columns[label.name] = label.draw_rows(count, rng)
    if schema.person_id is not None and schema.max_rows is not None:
        most = min(schema.max_rows, 3)  # rows of one person
        people = [f"person {row // most}" for row in range(count)]
        columns[schema.person_id] = np.array(people, dtype=object)
    return tables.make_arrow(columns)


__all__ = ["Category", "Coded", "Column", "Date", "Number", "Schema", "is_missing", "make_dummy_rows"]
