"""Source and target pairs for clustering: paper 000's synthetic sets, and its real ones from local copies.

All scaling is public: synthetic points are divided by a constant that brings the
generator's support into the ball of radius 1/2 and clipped; real features go through
a public Gaussian projection to 8 features, centred and scaled by the target alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.bounds import Ball
from privada_lab.datasets.files import find

RADIUS = 0.5
WIDTH = 8


@dataclass(frozen=True, eq=False)
class Pair:
    """A private source and a public target in the ball of radius 1/2."""

    name: str
    source: FloatArray
    target: FloatArray


@dataclass(frozen=True, eq=False)
class LabelledPair:
    """A pair whose labels are known to their holders, with features to learn from.

    Attributes
    ----------
    pair : Pair
        Where points are chosen.
    X, y, Xt, yt : arrays
        Features and labels of source and target, the features in the ball of radius 1/2.
    classes : tuple of int
        Public.
    """

    pair: Pair
    X: FloatArray
    y: npt.NDArray[np.int64]
    Xt: FloatArray
    yt: npt.NDArray[np.int64]
    classes: tuple[int, ...]


def synthetic(which: int, *, seed: int, source_size: int = 5000, target_size: int = 1000) -> Pair:
    """Synthetic 1, 2 or 3 of paper 000, fresh for each seed.

    >>> pair = synthetic(2, seed=0, source_size=50, target_size=20)
    >>> pair.source.shape, pair.target.shape
    ((50, 2), (20, 2))
    """
    makers: dict[int, Callable[[np.random.Generator, int, int], tuple[FloatArray, FloatArray, float]]]
    makers = {1: _two_gaussians, 2: _grids, 3: _random_clusters}
    if which not in makers:
        raise InputError(f"Expected which to be 1, 2 or 3, got {which!r}.")
    source, target, constant = makers[which](np.random.default_rng(seed), source_size, target_size)
    ball = Ball(radius=RADIUS)
    return Pair(f"synthetic {which}", ball.clip(source / constant), ball.clip(target / constant))


def _two_gaussians(rng: np.random.Generator, m: int, n: int) -> tuple[FloatArray, FloatArray, float]:
    return rng.normal(0.15, 0.4, size=(m, 2)), rng.normal(0.95, 0.4, size=(n, 2)), 6.0


def _grids(rng: np.random.Generator, m: int, n: int) -> tuple[FloatArray, FloatArray, float]:
    def grid(xs: npt.ArrayLike, ys: npt.ArrayLike) -> FloatArray:
        return np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)

    low, right = (0.1, 0.2, 0.3), (0.7, 0.8, 0.9)
    top = grid(np.linspace(0.1, 0.9, 6), right)
    source = _clusters(rng, np.vstack([top, grid(right, low)]), m, 0.01)
    target = _clusters(rng, np.vstack([grid(low, low), grid(right, low)]), n, 0.01)
    return source, target, 2.8


def _random_clusters(rng: np.random.Generator, m: int, n: int) -> tuple[FloatArray, FloatArray, float]:
    source = _clusters(rng, rng.uniform(size=(6, 2)), m, 0.03)
    target = _clusters(rng, rng.uniform(size=(12, 2)), n, 0.01)
    return source, target, 2.8


def _clusters(rng: np.random.Generator, means: FloatArray, size: int, spread: float) -> FloatArray:
    return means[rng.integers(len(means), size=size)] + rng.normal(0.0, spread, size=(size, means.shape[1]))


def real_pairs(folder: Path, *, seed: int = 0) -> Iterator[Pair]:
    """All real pairs of paper 000 whose files are in ``folder``, in both directions.

    MNIST digits 1-7, 5-2 and 9-6, Office (GoogLeNet features) and Superconductivity quarters.
    """
    for reader in (_mnist, _office, _superconductivity):
        for name, source, target in reader(folder):
            yield _projected(name, source, target, seed)


def labelled_pairs(folder: Path, *, seed: int = 7, width: int = 32) -> Iterator[LabelledPair]:
    """Office pairs with labels; features to learn from are the target's first principal components."""
    with np.load(find(folder, "office10_googlenet/office10_googlenet.npz"), allow_pickle=False) as file:
        rows = {name: file[f"x_{name}"].astype(np.float64) for name in ("amazon", "webcam")}
        labels = {name: file[f"y_{name}"].astype(np.int64) for name in rows}
    for source, target in permutations(rows, 2):
        pair = _projected(f"office {source}-{target}", rows[source], rows[target], seed)
        X, Xt = _components(rows[source], rows[target], width)
        classes = tuple(range(1, 11))
        yield LabelledPair(pair, X, labels[source].ravel(), Xt, labels[target].ravel(), classes)


def _components(source: FloatArray, target: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """Both in the public target's principal components, scaled by its median norm and clipped."""
    middle = target.mean(axis=0)
    axes = np.linalg.svd(target - middle, full_matrices=False)[2][:width]
    here, there = ((rows - middle) @ axes.T for rows in (source, target))
    constant = float(np.median(np.linalg.norm(there, axis=1))) / RADIUS
    ball = Ball(radius=RADIUS)
    return ball.clip(here / constant), ball.clip(there / constant)


def _projected(name: str, source: FloatArray, target: FloatArray, seed: int) -> Pair:
    """A public projection; centre and scale are the target's, which is public."""
    middle, spread = target.mean(axis=0), target.std(axis=0)
    spread = (
        np.where(spread > 0, spread, 1.0) if name.startswith("superconductivity") else np.ones_like(spread)
    )
    matrix = np.random.default_rng(seed).normal(size=(target.shape[1], WIDTH)) / np.sqrt(WIDTH)
    here, there = ((rows - middle) / spread @ matrix for rows in (source, target))
    constant = np.linalg.norm(there, axis=1).max() / RADIUS
    ball = Ball(radius=RADIUS)
    return Pair(name, ball.clip(here / constant), ball.clip(there / constant))


Raw = Iterator[tuple[str, FloatArray, FloatArray]]


def _mnist(folder: Path) -> Raw:
    with np.load(find(folder, "mnist/mnist.npz"), allow_pickle=False) as file:
        images, labels = file["x_train"].reshape(-1, 784) / 255.0, file["y_train"]
    for a, b in ((1, 7), (5, 2), (9, 6)):
        for source, target in ((a, b), (b, a)):
            yield f"mnist {source}-{target}", images[labels == source], images[labels == target]


def _office(folder: Path) -> Raw:
    with np.load(find(folder, "office10_googlenet/office10_googlenet.npz"), allow_pickle=False) as file:
        domains = {name: file[f"x_{name}"].astype(np.float64) for name in ("amazon", "dslr", "webcam")}
    for source, target in permutations(domains, 2):
        yield f"office {source}-{target}", domains[source], domains[target]


def _superconductivity(folder: Path) -> Raw:
    import pyarrow.parquet as pq

    table = pq.read_table(find(folder, "superconductivity/superconductivity.parquet"))
    split = table["wtd_std_Valence"].to_numpy()
    kept = [name for name in table.column_names if name not in ("critical_temp", "wtd_std_Valence")]
    X = np.column_stack([table[name].to_numpy() for name in kept]).astype(np.float64)
    quarter = np.digitize(split, (0.306892, 0.5, 1.020436), right=True)
    names = ("low", "ml", "mh", "high")
    for source, target in permutations(range(4), 2):
        yield f"superconductivity {names[source]}-{names[target]}", X[quarter == source], X[quarter == target]


__all__ = ["RADIUS", "LabelledPair", "Pair", "labelled_pairs", "real_pairs", "synthetic"]
