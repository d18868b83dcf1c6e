"""Secret divisions of private rows: into folds, or into rows to fit on and rows that are held out.

A division is drawn by labels that look at no row, from the noise of the operating system, and is never
published. The rows of a data set have no order; a division by their places in a file would have one. The
proof is in ``docs/explanation/privacy.md``, "Secret divisions".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import BaseCrossValidator

from privada import _check
from privada._arrays import IntArray
from privada.exceptions import InputError
from privada.methods.frames import names_of
from privada.parties.one_process.process_ledger import note_division
from privada.parties.rows import number_persons
from privada.parties.schema import Schema
from privada.parties.sources.memory import read_persons
from privada.privacy.noise import Noise, Rehearsal, SecureNoise
from privada.privacy.relation import Relation

SEED_OF_DIVISIONS = 2**31  # added to a rehearsal's seed, so that the fits have other noise


class PrivateKFold(BaseCrossValidator):  # type: ignore[misc]
    """Secret folds of private rows: scikit-learn's ``cv`` for estimators of privada.

    Every row, or every person, gets the number of a fold from the noise of the operating system. Folds that
    scikit-learn draws divide rows by their places. In a sorted file, one replaced row then moves many others
    to other folds, and ``spent_`` is refused. With these folds, it is stated.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    relation : "add/remove" or "replace-one", default="add/remove"
        Under add/remove, every row draws its fold by itself, so that sizes of folds vary. Under replace-one,
        where the number of rows is public, folds have equal sizes; estimators that are asked for add/remove
        must not be fitted on those, and ``spent_`` is then refused.
    schema : Schema, default=None
        The ``schema`` of the estimator, if it has one: frames are then recognised as it encodes them.
    insecure_seed : int, default=None
        Seed for reproducible folds: not private.

    Privacy
    -------
    Given the folds, neighbouring data sets differ in one unit of one fold, under add/remove and under
    replace-one, so each fit loses what its ``guarantee_`` states, and a row is in all training sets but one.
    The folds must stay secret: keep indices and scores on private rows where the rows are. Proof: privacy.md,
    "Secret divisions".

    Examples
    --------
    >>> import warnings; warnings.simplefilter("ignore")
    >>> from sklearn.model_selection import cross_validate
    >>> from privada import CellClassifier
    >>> X = np.linspace(0, 1, 600)[:, None]; y = (X[:, 0] > 0.5).astype(int)
    >>> model = CellClassifier([[0.2], [0.8]], classes=(0, 1), bounds=(0, 1), epsilon=0.5)
    >>> fits = cross_validate(model, X, y, cv=PrivateKFold(3), return_estimator=True)["estimator"]
    >>> print(fits[0].spent_)
    ε = 1 (pure), add/remove one row
    """

    __metadata_request__split = {"groups": True}  # noqa: RUF012 - how scikit-learn is told what split needs

    def __init__(
        self,
        n_splits: int = 5,
        *,
        relation: str = "add/remove",
        schema: Schema | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.relation = relation
        self.schema = schema
        self.insecure_seed = insecure_seed

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Number of folds."""
        return _check.count(least=2, n_splits=self.n_splits)

    def split(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        groups: Any = None,
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Draw a division, and yield places to fit on and places of one fold, for each fold.

        Parameters
        ----------
        X : array or frame
            The rows, as the estimator's ``fit`` is given them.
        y : ignored
        groups : array, default=None
            Person of each row, which keeps persons whole; needed where the estimator protects persons.
        """
        count = self.get_n_splits()
        rows = np.asarray(X) if self.schema is None else self.schema.encode(X)
        units = number_units(len(rows), groups)
        noise, size = noise_of_divisions(self.insecure_seed), int(units.max(initial=-1)) + 1
        has_fixed_sizes = Relation.parse(self.relation) is not Relation.ADD_REMOVE
        # One label for each unit, so that all rows of a person are in one fold
        folds = noise.permutation(size) % count if has_fixed_sizes else noise.integers_below(count, size)
        labels = folds[units]
        note_division(
            rows,
            labels,
            count=count,
            has_fixed_sizes=has_fixed_sizes,
            person=None if groups is None else read_persons(groups),
            columns=names_of(X) if self.schema is None else None,
        )
        for fold in range(count):
            yield np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)


def hold_out(units: IntArray, *, share: float, relation: Relation, noise: Noise) -> npt.NDArray[np.bool_]:
    """Choose secretly which rows are held out: all of a unit or none.

    Under add/remove each unit is held out by itself with this probability, as their number is not public;
    otherwise this share of them is, and all choices are equally likely.
    """
    count = int(units.max(initial=-1)) + 1
    if relation is Relation.ADD_REMOVE:
        return (noise.words(count) < np.uint64(int(share * 2**64)))[units]
    size = math.ceil(share * count)
    if not 0 < size < count:
        raise InputError("Expected rows or persons to hold out, and others to fit on; there are too few.")
    return (noise.permutation(count) < size)[units]


def number_units(rows: int, person: Any = None) -> IntArray:
    """Number the rows, or their persons."""
    if person is None:
        return np.arange(rows)
    people = read_persons(person)
    if people.shape != (rows,):
        raise InputError("Expected one person for each private row.")
    return number_persons(people, "person").astype(np.int64)


def noise_of_divisions(insecure_seed: int | None) -> Noise:
    """Return secure noise, or seeded noise that the fits do not share."""
    return SecureNoise() if insecure_seed is None else Rehearsal(insecure_seed + SEED_OF_DIVISIONS)


__all__ = ["PrivateKFold", "hold_out", "noise_of_divisions", "number_units"]
