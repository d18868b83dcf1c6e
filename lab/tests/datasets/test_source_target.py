import numpy as np
import pytest

from privada.exceptions import InputError
from privada_lab.datasets.source_target import RADIUS, labelled_pairs, real_pairs, synthetic


@pytest.mark.parametrize("which", [1, 2, 3])
def test_synthetic_pairs_are_in_the_public_ball_and_repeat(which):
    one, two = (synthetic(which, seed=4, source_size=300, target_size=100) for _ in range(2))
    assert np.array_equal(one.source, two.source)
    for rows in (one.source, one.target):
        assert np.linalg.norm(rows, axis=1).max() <= RADIUS
    assert not np.array_equal(one.target, synthetic(which, seed=5, source_size=300, target_size=100).target)


def test_scaling_is_by_a_constant_never_by_the_rows():
    few = synthetic(2, seed=1, source_size=10, target_size=5)
    again = synthetic(2, seed=1, source_size=10, target_size=500)
    assert np.array_equal(few.source, again.source)


def test_absent_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"no mnist/mnist\.npz.*--data or PRIVADA_DATA"):
        next(real_pairs(tmp_path))
    with pytest.raises(InputError, match="1, 2 or 3"):
        synthetic(4, seed=0)


def test_real_pairs_are_projected_by_public_quantities(tmp_path):
    """Generated stand-ins in the files' form: the target alone decides centre and scale."""
    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    images, labels = rng.integers(0, 255, size=(60, 28, 28)), np.repeat([1, 7, 5, 2, 9, 6], 10)
    np.savez(tmp_path / "mnist" / "mnist.npz", x_train=images, y_train=labels)
    first = next(real_pairs(tmp_path))
    assert first.name == "mnist 1-7"
    assert first.source.shape == first.target.shape == (10, 8)
    assert np.linalg.norm(first.target, axis=1).max() == pytest.approx(RADIUS, rel=1e-6)
    images[labels == 1] = 255 - images[labels == 1]
    np.savez(tmp_path / "mnist" / "mnist.npz", x_train=images, y_train=labels)
    assert np.array_equal(next(real_pairs(tmp_path)).target, first.target)


def test_labelled_pairs_take_features_from_the_target_alone(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "office10_googlenet").mkdir()
    file = tmp_path / "office10_googlenet" / "office10_googlenet.npz"
    domains = {name: rng.normal(size=(40, 50)) for name in ("amazon", "dslr", "webcam")}
    labels = {f"y_{name}": rng.integers(1, 11, size=40) for name in domains}
    np.savez(file, **{f"x_{name}": rows for name, rows in domains.items()}, **labels)
    first, second = labelled_pairs(tmp_path)
    assert (first.pair.name, second.pair.name) == ("office amazon-webcam", "office webcam-amazon")
    assert first.X.shape == first.Xt.shape == (40, 32)
    assert np.linalg.norm(first.X, axis=1).max() <= RADIUS
    np.savez(file, **{f"x_{name}": rows + (name == "amazon") for name, rows in domains.items()}, **labels)
    assert np.array_equal(next(labelled_pairs(tmp_path)).Xt, first.Xt)
