"""What ``privada init --method NAME`` writes: a commented study with generated rows, described by a method.

A method's ``template.py`` has the study's text and its tables; `privada.studies.example` writes files, keys,
ledgers and budgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Label = tuple[str, Sequence[str]] | tuple[str, tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of a CSV file, with a header.

    Attributes
    ----------
    names : sequence of str
        Columns of numbers.
    rows : array
        The numbers.
    label : str, default=""
        A last column, if it has a name.
    labels : array, optional
        Its values.
    """

    names: Sequence[str]
    rows: npt.NDArray[np.float64]
    label: str = ""
    labels: npt.NDArray[np.generic] | None = None

    def to_csv(self) -> str:
        """The file."""
        lines = [",".join(f"{value:.3f}" for value in row) for row in self.rows]
        if self.labels is not None:
            lines = [f"{line},{_word(last)}" for line, last in zip(lines, self.labels, strict=True)]
        names = ",".join([*self.names, *([self.label] if self.label else [])])
        return "\n".join([names, *lines]) + "\n"


def _word(value: np.generic) -> str:
    return f"{value:.3f}" if isinstance(value, np.floating) else str(value)


@dataclass(frozen=True, kw_only=True)
class OwnerTemplate:
    """One owner: private rows and the ``owner.toml`` that describes them."""

    toml: str
    table: Table


@dataclass(frozen=True, kw_only=True)
class StudyTemplate:
    """A whole example study.

    Attributes
    ----------
    study : str
        ``study.toml``.
    story : str
        Who holds what, in a sentence or two, for the example's README.
    owners : mapping of name to OwnerTemplate
        Each gets a folder of that name.
    files : mapping of file name to Table or str
        The learner's public files: tables, or text as it is written.
    """

    study: str
    story: str
    owners: Mapping[str, OwnerTemplate]
    files: Mapping[str, Table | str] = field(default_factory=dict)


def describe_owner(
    table: Table,
    *,
    name: str,
    method: str,
    privacy: str,
    bounds: tuple[float, float],
    label: Label | None = None,
    public_size: bool = True,
    policy: str = "",
) -> str:
    """Text of an ``owner.toml`` for rows in ``rows.csv``.

    Parameters
    ----------
    table : Table
        The rows; only their names and their number are used.
    name, method : str
        Identity of the data set, and the method that it allows.
    privacy : str
        Lines of the ``[privacy]`` table.
    bounds : (low, high)
        Public bounds of every column.
    label : (name, classes) or (name, (low, high)), optional
        The column of labels.
    public_size : bool, default=True
        Whether the number of rows is declared.
    policy : str, default=""
        More lines of the ``[policy]`` table.
    """
    low, high = bounds
    columns = "\n".join(
        f'[[schema.columns]]\nname = "{name}"\nlow = {low}\nhigh = {high}\n' for name in table.names
    )
    size = f"[schema]\nsize = {len(table.rows)} # declared, and so public\n\n" if public_size else ""
    return f"""\
[data]
name = "{name}" # identity of the data set: the budget follows it, not the file
path = "rows.csv"

[privacy]
{privacy}

[ledger]
url = "ledger.sqlite"
key = "owner.key"

[policy]
methods = ["{method}"]
approval = false # true: a person decides on every question
{policy}
{size}# Bounds and classes are public: they come from domain knowledge, never from the rows.
{columns}{_label(label)}"""


def _label(label: Label | None) -> str:
    if label is None:
        return ""
    name, values = label
    if isinstance(values[0], str):
        listed = ", ".join(f'"{value}"' for value in values)
        return f'\n[schema.label]\nname = "{name}"\nvalues = [{listed}]\n'
    return f'\n[schema.label]\nname = "{name}"\nlow = {values[0]}\nhigh = {values[1]}\n'


__all__ = ["OwnerTemplate", "StudyTemplate", "Table", "describe_owner"]
