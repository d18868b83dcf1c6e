"""Functions of rows, such as digests, folds and hold-outs: each row's value must be its own.

A data set is a multiset, so what is decided about a row (on which side it stands, by which digest it is
recognised) may depend only on that row and on public things. A function that takes all rows at once can
break this without any noise being involved: by the places of rows, by their number, or by a type that is
chosen for all of them together. `audit_row_function` shows it the same rows in other company.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privada import _check
from privada.exceptions import InputError

Row = Sequence[Any]
OTHER_VALUES = (0.5, -0.0, 2**53 + 1, -(2**63), 1e300, float("nan"), float("inf"), True, None, "a word")


@dataclass(frozen=True)
class RowFunctionAudit:
    """The companies in which a row had another value.

    Attributes
    ----------
    differing : tuple of (str, int)
        What was changed around the rows, and how many of them then had another value.
    refused : tuple of str
        Rows beside which the function refused to answer. That is no difference: whether a row is
        acceptable at all is for the schema.
    compared : int
        In how many companies the values were compared.
    """

    differing: tuple[tuple[str, int], ...]
    refused: tuple[str, ...]
    compared: int

    @property
    def passed(self) -> bool:
        """Whether every row had the same value everywhere."""
        return not self.differing

    def __str__(self) -> str:
        if self.passed:
            return f"passed: every row has the same value in {self.compared} companies"
        cases = "; ".join(f"{name}: {count} rows have another value" for name, count in self.differing)
        return f"FAILED: {cases}"


def audit_row_function(
    function: Callable[[list[Row]], Any], rows: Sequence[Row], *, replaces: bool = False, seed: int = 0
) -> RowFunctionAudit:
    """Check that a function's value for a row does not depend on the other rows.

    Parameters
    ----------
    function : callable
        Takes a list of rows and returns one value for each: a number, a text, bytes or an array. It must be
        deterministic; bind its key or seed beforehand.
    rows : sequence of sequences
        Generated rows, at least two, as Python values. Include what is hard to represent, such as whole
        numbers above 2^53. They must differ from each other.
    replaces : bool, default=False
        Whether the number of rows is public (replace-one and attribute); then it stays the same.
    seed : int, default=0
        Seed of the orders that are tried.

    Examples
    --------
    >>> rows = [[2**53 + 1], [2**53 + 3], [2**53 + 5]]
    >>> print(audit_row_function(lambda rows: [row[0] % 2 for row in rows], rows))
    passed: every row has the same value in 23 companies
    >>> audit = audit_row_function(lambda rows: np.asarray(rows)[:, 0] % 2, rows)  # one type for all rows
    >>> audit.passed, audit.differing[0]
    (False, ('beside 0.5', 3))
    """
    if len(rows) < 2:
        raise InputError(f"Expected at least two rows, got {len(rows)}.")
    _check.count(least=0, seed=seed)
    first = list(function(list(rows)))
    _check_length(first, rows)
    expected = [_comparable(value) for value in first]
    differing, refused, compared = [], [], 0
    for name, company, places in _companies(list(rows), replaces=replaces, seed=seed):
        try:
            values = list(function(company))
        except Exception:
            if not name.startswith("beside"):
                raise
            refused.append(name)  # a strange row, which a schema would not let in
            continue
        _check_length(values, company)
        compared += 1
        changed = sum(_comparable(values[place]) != expected[row] for place, row in places.items())
        if changed:
            differing.append((name, changed))
    return RowFunctionAudit(tuple(differing), tuple(refused), compared)


def _companies(
    rows: list[Row], *, replaces: bool, seed: int
) -> Iterator[tuple[str, list[Row], dict[int, int]]]:
    """Yield companies: a name, the rows, and which of the original rows stands at which place."""
    n = len(rows)
    rng = np.random.default_rng(seed)
    for name, order in {"reversed": np.arange(n)[::-1], "in a random order": rng.permutation(n)}.items():
        yield name, [rows[row] for row in order], dict(enumerate(order.tolist()))
    if not replaces:
        for row in (0, n - 1):
            yield "alone", [rows[row]], {0: row}
        yield "without the first", rows[1:], {at: at + 1 for at in range(n - 1)}
        yield "without the last", rows[:-1], {at: at for at in range(n - 1)}
        yield "twice", rows + rows, {at: at % n for at in range(2 * n)}
    for value in OTHER_VALUES:
        other = [value, *rows[0][1:]]
        if replaces:
            yield f"beside {value!r}", [other, *rows[1:]], {at: at for at in range(1, n)}
            yield (
                f"beside {value!r} in the last place",
                [*rows[1:], other],
                {at: at + 1 for at in range(n - 1)},
            )
        else:
            yield f"beside {value!r}", [other, *rows], {at + 1: at for at in range(n)}
            yield f"beside {value!r} in the last place", [*rows, other], {at: at for at in range(n)}


def _check_length(values: list[Any], rows: Sequence[Row]) -> None:
    if len(values) != len(rows):
        raise InputError(f"Expected one value for each of {len(rows)} rows, got {len(values)}.")


def _comparable(value: Any) -> Any:
    """Turn a value into plain Python, so that 1 and 1.0 of different array types are the same."""
    if isinstance(value, np.ndarray):
        return tuple(_comparable(part) for part in value.tolist())
    plain = value.item() if isinstance(value, np.generic) else value
    return "nan" if isinstance(plain, float) and np.isnan(plain) else plain
