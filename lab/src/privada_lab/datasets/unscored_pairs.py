"""Pairs of labelled domains on which settings of transport are chosen: no figure of ours scores them.

Generated ones and scikit-learn's are always there. With a data folder there are more, as files exist: gas
sensors, incomes, and MNIST's training images from the 20,001st on, altered (those that score are among the
first 2,000). scikit-learn's digits score, so they are left out.

=================  ===============================================================================
kind               pairs
=================  ===============================================================================
mixtures           Gaussian classes whose means and common mean move; spectrum as 1/k, 2 to 20 classes
activations        classes in 16 hidden directions, seen through 256 rectified ones; 10 and 20 classes
words              bags of 60 words of 300; both the words of a class and the common ones change
informative        `sklearn.datasets.make_classification`, rescaled and moved feature by feature
scikit-learn       wine by its ash, breast cancer by smoothness: below and above the median, both ways
gas, incomes       batches of sensors in time; men and women, both ways
altered images     MNIST rotated, blurred, thinned or moved against MNIST as it is, both ways
=================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada_lab.datasets.adaptation import BENCHMARKS, Domain
from privada_lab.datasets.files import find

Rows = tuple[FloatArray, IntArray]
MOST = 400  # rows of a domain
REACH = 5.0  # of standardised features
FIRST_IMAGE = 20_000
GAS_BATCHES = ((1, 2), (2, 3), (3, 4), (2, 6), (6, 9), (9, 6))


@dataclass(frozen=True, eq=False)
class UnscoredPair:
    """A source and a target; ``low`` is the public lower bound of every feature."""

    kind: str
    source: Domain
    target: Domain
    n_classes: int
    low: float

    @property
    def name(self) -> str:
        """Of the pair."""
        return f"{self.kind}: {self.source.name} to {self.target.name}"


def unscored_pairs(folder: Path | None = None) -> Iterator[UnscoredPair]:
    """All pairs, in a fixed order; the same rows in every call.

    >>> len(list(unscored_pairs()))
    18
    """
    yield from _mixtures()
    yield from _activations()
    yield from _words()
    yield from _informative()
    yield from _wine_and_cancer()
    if folder is not None:
        yield from _gas(folder)
        yield from _incomes(folder)
        yield from _images(folder)


def _mixtures() -> Iterator[UnscoredPair]:
    few = (2, 60, 2.0, 0.5), (4, 40, 2.5, 1.0)
    many = (10, 80, 4.5, 1.5), (10, 100, 3.0, 0.7), (20, 80, 4.5, 1.0)
    for index, (q, d, apart, shift) in enumerate(few + many):
        rng = np.random.default_rng(100 + index)
        scale = 2 * np.sqrt(1 / np.arange(1, d + 1))
        means = 2 * rng.normal(size=(q, d)) * apart / np.sqrt(d) * np.minimum(scale, 1)
        turned = np.linalg.qr(rng.normal(size=(d, d)))[0]
        sides = []
        for moved in (0.0, shift):
            y = rng.integers(q, size=MOST)
            places = means + 0.15 * moved * rng.normal(size=(q, d)) + 0.3 * moved * rng.normal(size=d)
            sides.append(((places[y] + rng.normal(size=(MOST, d)) * scale) @ turned, y))
        yield _standardised("mixtures", (f"source {index}", f"target {index}"), *sides, n_classes=q)


def _activations(hidden: int = 16, width: int = 256) -> Iterator[UnscoredPair]:
    for index, (q, n, shift) in enumerate(((10, 150, 0.3), (10, MOST, 0.5), (20, MOST, 0.3))):
        rng = np.random.default_rng(200 + index)
        classes, weights = rng.normal(size=(q, hidden)), rng.normal(size=(hidden, width)) / np.sqrt(hidden)
        offset = rng.normal(size=width) * 0.5 - 0.5
        sides = []
        for size, moved in ((n, 0.0), (MOST, shift)):
            y = rng.integers(q, size=size)
            inner = classes[y] + 0.5 * rng.normal(size=(size, hidden)) + moved * rng.normal(size=hidden)
            seen = inner @ (weights + moved * rng.normal(size=weights.shape) / np.sqrt(hidden)) + offset
            sides.append((np.maximum(seen + 0.5 * rng.normal(size=seen.shape), 0), y))
        yield _pair("activations", (f"source {index}", f"target {index}"), *sides, n_classes=q, low=0.0)


def _words(length: int = 60, width: int = 300) -> Iterator[UnscoredPair]:
    for index, (q, of_class, shift) in enumerate(((2, 0.3, 0.5), (5, 0.4, 0.5), (10, 0.5, 0.3))):
        rng = np.random.default_rng(300 + index)
        topics, common = rng.dirichlet(np.full(width, 0.1), size=q), rng.dirichlet(np.full(width, 0.2))
        sides = []
        for moved in (0.0, shift):
            mixed = (1 - moved) * topics + moved * rng.dirichlet(np.full(width, 0.1), size=q)
            around = (1 - moved) * common + moved * rng.dirichlet(np.full(width, 0.2))
            y = rng.integers(q, size=MOST)
            chances = of_class * mixed[y] + (1 - of_class) * around
            sides.append((rng.multinomial(length, chances).astype(np.float64), y))
        yield _pair("words", (f"source {index}", f"target {index}"), *sides, n_classes=q, low=0.0)


def _informative() -> Iterator[UnscoredPair]:
    from sklearn.datasets import make_classification

    for index, (q, d, informative) in enumerate(((2, 40, 8), (3, 60, 12), (6, 60, 20))):
        rng = np.random.default_rng(400 + index)
        X, y = make_classification(
            2 * MOST,
            d,
            n_informative=informative,
            n_redundant=informative,
            n_classes=q,
            n_clusters_per_class=1,
            class_sep=1.5,
            random_state=400 + index,
        )
        target = X[MOST:] * rng.uniform(0.7, 1.4, size=d) + 0.5 * rng.normal(size=d)
        sides = (X[:MOST], y[:MOST]), (target, y[MOST:])
        yield _standardised("informative", (f"source {index}", f"target {index}"), *sides, n_classes=q)


def _wine_and_cancer() -> Iterator[UnscoredPair]:
    from sklearn.datasets import load_breast_cancer, load_wine

    for name, load, feature, q in (("wine", load_wine, 2, 3), ("cancer", load_breast_cancer, 4, 2)):
        X, y = load(return_X_y=True)
        high = X[:, feature] > np.median(X[:, feature])
        yield from _both_ways("scikit-learn", f"{name} low", f"{name} high", _halves(X, y, high), n_classes=q)


def _gas(folder: Path) -> Iterator[UnscoredPair]:
    path = "gas_drift/gas_drift.parquet"
    if not (folder / path).exists():
        return
    import pyarrow.parquet as pq

    table = pq.read_table(find(folder, path))
    X = np.column_stack([table[name].to_numpy() for name in table.column_names if name.startswith("s")])
    X, y = np.sign(X) * np.log1p(np.abs(X)), table["gas"].to_numpy().astype(np.int64) - 1
    batch = table["batch"].to_numpy()
    for here, there in GAS_BATCHES:
        sides = (X[batch == here], y[batch == here]), (X[batch == there], y[batch == there])
        yield _standardised("gas", (f"batch {here}", f"batch {there}"), *sides, n_classes=6)


def _incomes(folder: Path) -> Iterator[UnscoredPair]:
    path = "adult/adult.parquet"
    if not (folder / path).exists():
        return
    import pyarrow.parquet as pq

    table = pq.read_table(find(folder, path))
    columns = [
        table[name].to_numpy(zero_copy_only=False).astype(np.float64)
        for name in ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
    ]
    for name in ("workclass", "marital_status", "occupation", "race"):
        values = table[name].to_numpy(zero_copy_only=False).astype(str)
        columns += [(values == value).astype(np.float64) for value in sorted(set(values))]
    y = (table["income"].to_numpy(zero_copy_only=False).astype(str) == ">50K").astype(np.int64)
    women = table["sex"].to_numpy(zero_copy_only=False).astype(str) == "Female"
    yield from _both_ways("incomes", "men", "women", _halves(np.column_stack(columns), y, women), n_classes=2)


def _images(folder: Path) -> Iterator[UnscoredPair]:
    path = BENCHMARKS["digits"].file
    if not (folder / path).exists():
        return
    checked = find(folder, path)
    with np.load(checked, allow_pickle=False) as file:
        kept = slice(FIRST_IMAGE, FIRST_IMAGE + 2 * MOST)
        images, y = file["x_train"][kept].astype(np.float64), file["y_train"][kept].astype(np.int64)
    plain = images[:MOST].reshape(MOST, -1), y[:MOST]
    for name, alter in ALTERATIONS.items():
        altered = np.maximum(alter(images[MOST:]), 0).reshape(MOST, -1), y[MOST:]
        for sides, names in (((plain, altered), ("plain", name)), ((altered, plain), (name, "plain"))):
            yield _pair("images", names, *sides, n_classes=10, low=0.0)


def _rotated(images: FloatArray) -> FloatArray:
    from scipy.ndimage import rotate

    return np.asarray(rotate(images, 25, axes=(1, 2), reshape=False, order=1))


def _blurred(images: FloatArray) -> FloatArray:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(images, (0, 1.5, 1.5)))


def _thinned(images: FloatArray) -> FloatArray:
    from scipy.ndimage import minimum_filter

    return np.asarray(minimum_filter(images, (1, 2, 2)))


def _moved(images: FloatArray) -> FloatArray:
    return np.roll(images, (2, 1), axis=(1, 2))


ALTERATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "rotated": _rotated,
    "blurred": _blurred,
    "thinned": _thinned,
    "moved": _moved,
}


def _halves(X: FloatArray, y: IntArray, there: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    return (X[~there], y[~there]), (X[there], y[there])


def _both_ways(
    kind: str, first: str, second: str, sides: tuple[Rows, Rows], *, n_classes: int
) -> Iterator[UnscoredPair]:
    yield _standardised(kind, (first, second), *sides, n_classes=n_classes)
    yield _standardised(kind, (second, first), *sides[::-1], n_classes=n_classes)


def _standardised(
    kind: str, names: tuple[str, str], source: Rows, target: Rows, *, n_classes: int
) -> UnscoredPair:
    """Both sides in the scale of the target, which is public."""
    middle, spread = target[0].mean(axis=0), target[0].std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    rows = [(np.clip((X - middle) / spread, -REACH, REACH), y) for X, y in (source, target)]
    return _pair(kind, names, *rows, n_classes=n_classes, low=-REACH)


def _pair(
    kind: str, names: tuple[str, str], source: Rows, target: Rows, *, n_classes: int, low: float
) -> UnscoredPair:
    """At most `MOST` rows of each side."""
    rng = np.random.default_rng(0)

    def side(name: str, X: FloatArray, y: IntArray) -> Domain:
        kept = rng.permutation(len(X))[:MOST]
        return Domain(name, np.ascontiguousarray(X[kept], dtype=np.float64), y[kept].astype(np.int64))

    return UnscoredPair(kind, side(names[0], *source), side(names[1], *target), n_classes, low)


__all__ = ["UnscoredPair", "unscored_pairs"]
