import numpy as np
import pytest
from scipy.spatial.distance import pdist

from privada.exceptions import InputError
from privada_lab.datasets.shift import adult_shift, digits_shift, insurance_shift, mnist_shift


@pytest.mark.parametrize("owners", [1, 4, 16])
def test_domains_are_handed_out(owners):
    shift = digits_shift(seed=1, owners=owners)
    assert len(shift.owners) == owners
    assert sum(len(y) for _, y in shift.owners) == 600 + 529
    assert len(shift.owners[0][0]) > 529
    assert shift.validation.shape == (100, 64)
    for X, y in shift.owners:
        assert len(X) == len(y)
        assert X.min() >= shift.bounds[0]
        assert X.max() <= shift.bounds[1] + 1e-12


def test_the_scale_makes_the_kernel_wide_enough():
    shift = digits_shift(seed=1)
    assert 0.1 * np.median(pdist(shift.validation, "sqeuclidean")) == pytest.approx(1, abs=0.1)


def test_mnist_in_its_form(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    images = rng.integers(0, 255, size=(4200, 28, 28), dtype=np.uint8)
    np.savez(
        tmp_path / "mnist" / "mnist.npz",
        x_train=images,
        y_train=rng.integers(0, 10, 4200),
        x_test=images[:50],
        y_test=np.zeros(50),
    )
    shift = mnist_shift(tmp_path, seed=0, owners=4)
    assert [len(X) for X, _ in shift.owners] == [1850, 450, 450, 450]
    assert shift.validation.shape == (150, 256)
    assert len(shift.test[1]) == 450
    assert len(shift.seed_set) == 150


def test_insurance_in_its_form(tmp_path):
    rng = np.random.default_rng(0)
    n = 5000
    columns = {
        "customer_ID": np.arange(n),
        "record_type": np.ones(n, int),
        "state": rng.choice(["FL", "CT", "OH"], n, p=[0.4, 0.5, 0.1]),
        "group_size": rng.integers(1, 5, n),
        "homeowner": rng.integers(0, 2, n),
        "car_age": rng.integers(0, 40, n),
        "car_value": rng.choice(list("abcdefg"), n),
        "risk_factor": rng.choice(["1", "2", "NA"], n),
        "age_oldest": rng.integers(18, 75, n),
        "age_youngest": rng.integers(18, 75, n),
        "married_couple": rng.integers(0, 2, n),
        "C_previous": rng.choice(["1", "2", "3", "4"], n),
        "duration_previous": rng.integers(0, 15, n),
        "cost": rng.integers(300, 900, n),
        "A": rng.integers(0, 3, n),
    }
    (tmp_path / "insurance").mkdir()
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "insurance" / "train.csv").write_text("\n".join(lines) + "\n")
    shift = insurance_shift(tmp_path, seed=0)
    assert shift.classes == (0, 1, 2)
    assert [len(X) for X, _ in shift.owners] == [1850, 450, 450, 450]
    assert len(shift.seed_set) == 150
    assert np.isfinite(shift.owners[0][0]).all()


@pytest.mark.parametrize("reader", [mnist_shift, adult_shift, insurance_shift])
def test_missing_files_are_named(reader, tmp_path):
    with pytest.raises(InputError, match="--data or PRIVADA_DATA"):
        reader(tmp_path, seed=0)
