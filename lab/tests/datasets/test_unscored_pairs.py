"""Pairs on which settings are chosen: always the same rows, and none that scores."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada_lab.datasets.unscored_pairs import ALTERATIONS, FIRST_IMAGE, MOST, unscored_pairs


def test_rows_are_the_same_in_every_call_and_labels_are_codes():
    for first, again in zip(unscored_pairs(), unscored_pairs(), strict=True):
        for one, two in ((first.source, again.source), (first.target, again.target)):
            assert np.array_equal(one.X, two.X)
            assert np.array_equal(one.y, two.y)
            assert 0 < len(one.X) == len(one.y) <= MOST
            assert one.X.min() >= first.low
            assert set(one.y) <= set(range(first.n_classes))
        assert first.source.X.shape[1] == first.target.X.shape[1]
        assert not np.array_equal(first.source.X[:50], first.target.X[:50])


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("gas_drift", "adult", "mnist"):
        (tmp_path / name).mkdir()
    gas = {"gas": np.tile(np.arange(1, 7), 50), "batch": np.repeat([1, 2, 3, 4, 6, 9], 50)}
    gas |= {f"s{i}": rng.normal(size=300) * 1e4 for i in range(4)}
    pq.write_table(pa.table(gas), tmp_path / "gas_drift" / "gas_drift.parquet")
    adult = {name: rng.integers(9, size=60) for name in ("age", "education_num", "capital_gain")}
    adult |= {name: rng.integers(9, size=60) for name in ("capital_loss", "hours_per_week")}
    adult |= {name: ["a", "b", "c"] * 20 for name in ("workclass", "marital_status", "occupation", "race")}
    adult |= {"income": [">50K", "<=50K"] * 30, "sex": ["Male"] * 30 + ["Female"] * 30}
    pq.write_table(pa.table(adult), tmp_path / "adult" / "adult.parquet")
    images = np.zeros((FIRST_IMAGE + 2 * MOST, 28, 28), dtype=np.uint8)
    images[FIRST_IMAGE:] = rng.integers(1, 256, size=(2 * MOST, 28, 28))
    np.savez(tmp_path / "mnist" / "mnist.npz", x_train=images, y_train=np.arange(len(images)) % 10)
    return tmp_path


def test_a_folder_adds_real_pairs(folder):
    found = [pair for pair in unscored_pairs(folder) if pair.kind in ("gas", "incomes", "images")]
    kinds = [pair.kind for pair in found]
    assert (kinds.count("gas"), kinds.count("incomes"), kinds.count("images")) == (6, 2, 2 * len(ALTERATIONS))
    plain = next(pair.source.X for pair in found if pair.name == "images: plain to moved")
    assert plain.min() > 0  # none of the first images, which are blank here and score elsewhere


def test_an_empty_folder_adds_none(tmp_path):
    assert len(list(unscored_pairs(tmp_path))) == len(list(unscored_pairs()))
