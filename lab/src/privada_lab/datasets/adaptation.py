"""Readers of local copies of domain-adaptation benchmarks: features and labels, domain by domain.

============  ===================================================================  =================
name          file under the data folder                                           domains
============  ===================================================================  =================
googlenet     ``office10_googlenet/office10_googlenet.npz``                        amazon dslr webcam
surf          ``office_caltech10_surf/office_caltech10_surf.npz``                  and caltech
decaf6        ``office_caltech10_decaf6/office_caltech10_decaf6.npz``              and caltech
office_home   ``office_home/office_home.npz``                                      art clipart product
                                                                                   realworld
visda         ``visda/visda.npz``                                                  synthetic real
reviews       ``amazon_reviews/amazon_reviews.npz``                                books dvd
                                                                                   electronics kitchen
digits        ``mnist/mnist.npz``, beside scikit-learn's own 8x8 digits            mnist digits
============  ===================================================================  =================

All but the last two hold ``x_<domain>`` and ``y_<domain>``, labels numbered from 0 or from 1; reviews hold
compressed rows. Nothing is downloaded, and nothing is scaled by what is found in a file. Of MNIST the first
2,000 training images are read: the inner 20 by 20 pixels, in which its digits stand, averaged to 8 by 8 cells
of 0 to 16, as scikit-learn's digits have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada_lab.datasets.files import find

MNIST_ROWS = 2_000


@dataclass(frozen=True)
class Benchmark:
    """Where a benchmark is, and its public facts."""

    file: str
    domains: tuple[str, ...]
    n_classes: int
    high: float  # public upper bound of the features; the lower one is 0


OFFICE = ("amazon", "caltech", "dslr", "webcam")
BENCHMARKS = {
    "googlenet": Benchmark(
        "office10_googlenet/office10_googlenet.npz", ("amazon", "dslr", "webcam"), 10, 50.0
    ),
    "surf": Benchmark("office_caltech10_surf/office_caltech10_surf.npz", OFFICE, 10, 255.0),
    "decaf6": Benchmark("office_caltech10_decaf6/office_caltech10_decaf6.npz", OFFICE, 10, 100.0),
    "office_home": Benchmark(
        "office_home/office_home.npz", ("art", "clipart", "product", "realworld"), 65, 100.0
    ),
    "visda": Benchmark("visda/visda.npz", ("synthetic", "real"), 12, 100.0),
    "reviews": Benchmark(
        "amazon_reviews/amazon_reviews.npz", ("books", "dvd", "electronics", "kitchen"), 2, 255.0
    ),
    "digits": Benchmark("mnist/mnist.npz", ("mnist", "digits"), 10, 16.0),
}


@dataclass(frozen=True, eq=False)
class Domain:
    """One domain: features, and labels numbered from 0."""

    name: str
    X: FloatArray
    y: IntArray


def available(folder: Path) -> tuple[str, ...]:
    """Names of the benchmarks whose files are there."""
    return tuple(name for name, each in BENCHMARKS.items() if (folder / each.file).exists())


def read(name: str, folder: Path) -> dict[str, Domain]:
    """All domains of a benchmark."""
    benchmark = BENCHMARKS[_check.one_of(BENCHMARKS, name=name)]
    with np.load(find(folder, benchmark.file), allow_pickle=False) as file:
        reader = {"reviews": _review, "digits": _digit}.get(name, _plain)
        try:
            return {domain: reader(file, domain) for domain in benchmark.domains}
        except KeyError as error:
            raise InputError(f"{benchmark.file} lacks {error}.") from None


def pairs(domains: dict[str, Domain]) -> Iterator[tuple[Domain, Domain]]:
    """All ordered pairs of source and target."""
    yield from permutations(domains.values(), 2)


def _plain(file: npt.NDArray[np.float64], domain: str) -> Domain:
    found = {key: file[f"{key}_{domain}"] for key in "xy"}  # type: ignore[call-overload]
    y = np.asarray(found["y"]).ravel().astype(np.int64)
    return Domain(domain, np.asarray(found["x"], dtype=np.float64), y - int(y.min() > 0))


def _review(file: npt.NDArray[np.float64], domain: str) -> Domain:
    from scipy.sparse import csr_array

    part = {key: file[f"{domain}_train_{key}"] for key in ("y", "data", "indices", "indptr")}  # type: ignore[call-overload]
    y = (np.asarray(part["y"]) > 0).astype(np.int64)
    content = part["data"].astype(np.float64), part["indices"].astype(np.int32), part["indptr"]
    return Domain(domain, csr_array(content, shape=(len(y), 5000)).toarray(), y)


def _digit(file: npt.NDArray[np.float64], domain: str) -> Domain:
    if domain == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return Domain(domain, np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.int64))
    images, y = (file[key][:MNIST_ROWS] for key in ("x_train", "y_train"))  # type: ignore[call-overload]
    inner = np.asarray(images, dtype=np.float64)[:, 4:24, 4:24].repeat(2, axis=1).repeat(2, axis=2)
    cells = inner.reshape(len(inner), 8, 5, 8, 5).mean(axis=(2, 4)) * (16 / 255)
    return Domain(domain, cells.reshape(len(inner), 64), np.asarray(y, dtype=np.int64))


__all__ = ["BENCHMARKS", "Benchmark", "Domain", "available", "pairs", "read"]
