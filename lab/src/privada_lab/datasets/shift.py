"""Owners and a consumer under covariate shift, for summarization (paper 004).

Domain X is spread evenly over K owners; most of domain Y is at the first owner, a little of it
is the consumer's unlabelled validation set, the rest is for testing. All scaling is public: its
constants come from rows that no party of the study holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada_lab.datasets.files import find

GAMMA = 0.1
OTHER, OWNED, VALIDATION, TEST, SEED_SET = 1800, 1400, 150, 450, 150


@dataclass(frozen=True, eq=False, repr=False)
class Shift:
    """One study under shift.

    Attributes
    ----------
    name : str
    owners : tuple of (rows, labels)
        The first holds domain Y beside its part of domain X.
    validation : array
        D_v, of domain Y, without labels.
    test : (rows, labels)
        Of domain Y.
    seed_set : array
        D_init: rows of neither domain.
    bounds : pair of float
        Public bounds of every column.
    classes : tuple
    gamma : float
        Public kernel parameter for rows as they are here.
    """

    name: str
    owners: tuple[tuple[FloatArray, npt.NDArray[Any]], ...]
    validation: FloatArray
    test: tuple[FloatArray, npt.NDArray[Any]]
    seed_set: FloatArray
    bounds: tuple[float, float]
    classes: tuple[Any, ...]
    gamma: float = GAMMA


@dataclass(frozen=True, eq=False)
class _Parts:
    """Rows of both domains in random order, and what is public of them."""

    name: str
    other: tuple[FloatArray, npt.NDArray[Any]]
    wanted: tuple[FloatArray, npt.NDArray[Any]]
    seed_set: FloatArray
    reference: FloatArray  # rows of domain Y that no party holds
    classes: tuple[Any, ...]
    owned: int = OWNED
    validation: int = VALIDATION

    def shared(self, owners: int) -> Shift:
        """Scale publicly and hand out."""
        factor = _scale(self.reference)
        first, last = self.owned, self.owned + self.validation
        rows, labels = self.wanted[0] * factor, self.wanted[1]
        others = zip(
            np.array_split(self.other[0] * factor, owners), np.array_split(self.other[1], owners), strict=True
        )
        held = [(X, y) for X, y in others]
        held[0] = (np.vstack([rows[:first], held[0][0]]), np.concatenate([labels[:first], held[0][1]]))
        return Shift(
            name=self.name,
            owners=tuple(held),
            validation=rows[first:last],
            test=(rows[last:], labels[last:]),
            seed_set=self.seed_set * factor,
            bounds=(0.0, factor),
            classes=self.classes,
        )


def _scale(reference: FloatArray) -> float:
    """The factor that makes γ times the median squared distance 1."""
    from scipy.spatial.distance import pdist

    return float(1 / np.sqrt(GAMMA * np.median(pdist(reference, "sqeuclidean"))))


def mnist_shift(folder: Path, *, seed: int, owners: int = 4) -> Shift:
    """MNIST shift: domain X is rotated by 90 degrees, domain Y plain; the seed set is inverted.

    Images are padded and average-pooled to 16 x 16; the scale comes from test images, which no party holds.
    """
    with np.load(find(folder, "mnist/mnist.npz"), allow_pickle=False) as file:
        images, labels, unused = file["x_train"], file["y_train"].astype(np.int64), file["x_test"][:1000]
    order = np.random.default_rng(seed).permutation(len(images))[
        : OTHER + OWNED + VALIDATION + TEST + SEED_SET
    ]
    X, Y, init = np.split(order, [OTHER, len(order) - SEED_SET])
    parts = _Parts(
        name="MNIST shift",
        other=(_pooled(np.rot90(images[X], axes=(1, 2))), labels[X]),
        wanted=(_pooled(images[Y]), labels[Y]),
        seed_set=1.0 - _pooled(images[init]),
        reference=_pooled(unused),
        classes=tuple(range(10)),
    )
    return parts.shared(_check.count(owners=owners))


def _pooled(images: npt.NDArray[np.uint8]) -> FloatArray:
    padded = np.pad(images / 255.0, ((0, 0), (2, 2), (2, 2)))
    pooled = padded.reshape(len(images), 16, 2, 16, 2).mean(axis=(2, 4))
    return np.asarray(pooled.reshape(len(images), 256))


def digits_shift(*, seed: int, owners: int = 4) -> Shift:
    """The same shift on scikit-learn's 8 x 8 digits, smaller, for examples and tests.

    >>> shift = digits_shift(seed=0, owners=3)
    >>> [len(rows) for rows, _ in shift.owners], shift.validation.shape, len(shift.test[0])
    ([729, 200, 200], (100, 64), 300)
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    rows, labels = X[order] / 16.0, y[order].astype(np.int64)
    turned = np.rot90(rows[:600].reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
    wanted = slice(600, 600 + 529 + 100 + 300)
    parts = _Parts(
        name="digits shift",
        other=(np.ascontiguousarray(turned), labels[:600]),
        wanted=(rows[wanted], labels[wanted]),
        seed_set=1.0 - rows[1529:1600],
        reference=rows[1600:],
        classes=tuple(range(10)),
        owned=529,
        validation=100,
    )
    return parts.shared(_check.count(owners=owners))


_ADULT_NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 20_000),
    "capital-loss": (0, 3_000),
    "hours-per-week": (1, 99),
}
_ADULT_CATEGORIES = {
    "workclass": ("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov"),
    "marital-status": (
        "Married-civ-spouse",
        "Divorced",
        "Never-married",
        "Separated",
        "Widowed",
        "Married-spouse-absent",
    ),
    "occupation": (
        "Tech-support",
        "Craft-repair",
        "Other-service",
        "Sales",
        "Exec-managerial",
        "Prof-specialty",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
    ),
    "relationship": ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
}


def adult_shift(folder: Path, *, seed: int, owners: int = 4) -> Shift:
    """Adult shift: domain X is male, Y female, the label is income; the seed set is uniform in the box.

    Numbers are scaled by public bounds, categories one-hot; sex and sampling weight are left out.
    The scale comes from the file's test split, which no party holds.
    """
    table = _table(find(folder, "adult/adult.parquet"))
    X = _encoded(table, _ADULT_NUMBERS, _ADULT_CATEGORIES)
    y = np.char.startswith(table["income"].astype(str), ">").astype(np.int64)
    train, female = table["split"] == "train", table["sex"] == "Female"
    return _two_groups(
        "Adult shift", X, y, other=train & ~female, wanted=train & female, unused=~train & female, seed=seed
    ).shared(_check.count(owners=owners))


_INSURANCE_NUMBERS = {
    "group_size": (1, 4),
    "homeowner": (0, 1),
    "car_age": (0, 40),
    "age_oldest": (18, 75),
    "age_youngest": (16, 75),
    "married_couple": (0, 1),
    "duration_previous": (0, 15),
    "cost": (250, 950),
}
_INSURANCE_CATEGORIES: dict[str, tuple[Any, ...]] = {
    "car_value": ("a", "b", "c", "d", "e", "f", "g", "h", "i"),
    "risk_factor": ("1.0", "2.0", "3.0", "4.0"),
    "C_previous": ("1.0", "2.0", "3.0", "4.0"),
}


def insurance_shift(folder: Path, *, seed: int, owners: int = 4) -> Shift:
    """The paper's insurance set, if ``insurance/train.csv`` of the Kaggle challenge of 2014 is there.

    Purchases (``record_type`` 1) of Florida are domain X, of Connecticut domain Y; the label is
    product A; the seed set is of Ohio, whose rows also give the public scale.
    """
    from pyarrow import csv

    read = csv.read_csv(find(folder, "insurance/train.csv"))
    table = {name: read[name].to_numpy() for name in read.column_names}
    bought = table["record_type"].astype(int) == 1
    X = _encoded(table, _INSURANCE_NUMBERS, _INSURANCE_CATEGORIES)
    state, y = table["state"].astype(str), table["A"].astype(np.int64)
    return _two_groups(
        "insurance shift",
        X,
        y,
        other=bought & (state == "FL"),
        wanted=bought & (state == "CT"),
        unused=bought & (state == "OH"),
        seed=seed,
        seed_set=X[bought & (state == "OH")],
    ).shared(_check.count(owners=owners))


def _two_groups(
    name: str,
    X: FloatArray,
    y: npt.NDArray[np.int64],
    *,
    other: npt.NDArray[np.bool_],
    wanted: npt.NDArray[np.bool_],
    unused: npt.NDArray[np.bool_],
    seed: int,
    seed_set: FloatArray | None = None,
) -> _Parts:
    rng = np.random.default_rng(seed)
    sides = [rng.permutation(np.flatnonzero(side)) for side in (other, wanted, unused)]
    needed = OWNED + VALIDATION + TEST
    if len(sides[0]) < OTHER or len(sides[1]) < needed or len(sides[2]) < 2:
        raise InputError(f"Expected at least {OTHER} rows of domain X and {needed} of domain Y.")
    first = rng.uniform(size=(SEED_SET, X.shape[1])) if seed_set is None else seed_set[:SEED_SET]
    return _Parts(
        name=name,
        other=(X[sides[0][:OTHER]], y[sides[0][:OTHER]]),
        wanted=(X[sides[1][:needed]], y[sides[1][:needed]]),
        seed_set=first,
        reference=X[np.flatnonzero(unused)[:1000]],
        classes=tuple(np.unique(y).tolist()),
    )


def _table(path: Path) -> dict[str, npt.NDArray[Any]]:
    import pyarrow.parquet as pq

    read = pq.read_table(path)
    return {name.replace("_", "-"): read[name].to_numpy() for name in read.column_names}


def _encoded(
    table: dict[str, npt.NDArray[Any]],
    numbers: Mapping[str, tuple[float, float]],
    categories: Mapping[str, tuple[Any, ...]],
) -> FloatArray:
    """Numbers scaled to [0, 1] by public bounds, missing ones in the middle; categories one-hot."""
    columns = []
    for name, (low, high) in numbers.items():
        values = np.asarray(table[name], dtype=np.float64)
        scaled = np.clip((np.nan_to_num(values, nan=(low + high) / 2) - low) / (high - low), 0, 1)
        columns.append(scaled[:, None])
    for name, known in categories.items():
        columns.append(np.asarray(table[name].astype(str)[:, None] == np.asarray(known), dtype=np.float64))
    return np.hstack(columns)


__all__ = ["GAMMA", "Shift", "adult_shift", "digits_shift", "insurance_shift", "mnist_shift"]
