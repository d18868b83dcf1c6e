import numpy as np
import pytest

from privada.exceptions import InputError
from privada_lab.datasets.adaptation import BENCHMARKS, available, pairs, read


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


@pytest.mark.parametrize("name", ["googlenet", "surf", "decaf6", "office_home", "visda"])
def test_feature_files_are_read_whatever_their_numbering(tmp_path, name):
    benchmark = BENCHMARKS[name]
    (tmp_path / benchmark.file).parent.mkdir()
    arrays = {f"x_{domain}": np.ones((3, 4), np.float32) for domain in benchmark.domains}
    arrays |= {f"y_{domain}": np.array([[1], [2], [benchmark.n_classes]]) for domain in benchmark.domains}
    np.savez(tmp_path / benchmark.file, **arrays)
    assert available(tmp_path) == (name,)
    found = read(name, tmp_path)
    assert tuple(found) == benchmark.domains
    for domain in found.values():
        assert domain.y.tolist() == [0, 1, benchmark.n_classes - 1]
        assert domain.X.shape == (3, 4)


def test_both_kinds_of_digits_have_one_scale(tmp_path):
    (tmp_path / "mnist").mkdir()
    images = np.zeros((3, 28, 28), np.uint8)
    images[0, 4:24, 4:24] = 255  # all of the inner box
    images[1, 4:9, 4:9] = 255  # its first two cells by two
    images[2, :4] = 255  # the frame, which is cut off
    np.savez(tmp_path / "mnist" / "mnist.npz", x_train=images, y_train=np.array([5, 0, 9], np.uint8))
    found = read("digits", tmp_path)
    assert found["mnist"].y.tolist() == [5, 0, 9]
    assert np.allclose(found["mnist"].X[0], 16)
    assert np.allclose(found["mnist"].X[1].reshape(8, 8)[:2, :2], 16)
    assert found["mnist"].X[1].sum() == pytest.approx(64)
    assert not found["mnist"].X[2].any()
    assert found["digits"].X.shape == (1797, 64)
    assert found["digits"].X.max() == 16
