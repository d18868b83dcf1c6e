import numpy as np
import pytest

from privada.datasets.adaptation import BENCHMARKS, available, pairs, read
from privada.exceptions import InputError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "visda").mkdir()
    arrays = {f"x_{name}": np.ones((3, 4), np.float32) for name in BENCHMARKS["visda"].domains}
    arrays |= {f"y_{name}": np.array([1, 2, 12]) for name in BENCHMARKS["visda"].domains}
    np.savez(tmp_path / "visda" / "visda.npz", **arrays)
    (tmp_path / "amazon_reviews").mkdir()
    rows = {}
    for name in BENCHMARKS["reviews"].domains:
        parts = {"y": [-1, 1], "data": np.array([2, 3], np.uint8), "indices": [0, 4999], "indptr": [0, 1, 2]}
        rows |= {f"{name}_train_{key}": np.asarray(value) for key, value in parts.items()}
    np.savez(tmp_path / "amazon_reviews" / "amazon_reviews.npz", **rows)
    return tmp_path


def test_what_is_there_is_read(folder):
    assert available(folder) == ("visda", "reviews")
    visda = read("visda", folder)
    assert visda["real"].X.dtype == np.float64
    assert visda["real"].y.tolist() == [0, 1, 11]
    books = read("reviews", folder)["books"]
    assert books.X.shape == (2, 5000)
    assert books.X[1, 4999] == 3
    assert books.y.tolist() == [0, 1]
    assert len(list(pairs(read("reviews", folder)))) == 12


def test_what_is_not_there_is_named(folder):
    with pytest.raises(InputError, match="office_home"):
        read("office_home", folder)
    with pytest.raises(InputError, match="name"):
        read("imagenet", folder)
    np.savez(folder / "visda" / "visda.npz", x_real=np.ones(3))
    with pytest.raises(InputError, match="lacks"):
        read("visda", folder)
