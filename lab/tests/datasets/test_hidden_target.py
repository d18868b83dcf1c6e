import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import InputError
from privada_lab.datasets.hidden_target import LATENT, cardiotocography, hidden_target


@pytest.mark.parametrize(("name", "width"), [("A", 2), ("B", 4), ("C", 10), ("D", 15), ("E", 25)])
def test_sizes_and_labels(name, width):
    data = hidden_target(name, seed=1)
    assert data.source.shape == (4000, width)
    assert len(data.X) == len(data.X_test) == (1250 if name in "AB" else 2500)
    assert set(data.y) == {0, 1}
    assert 0.3 < np.r_[data.y, data.y_test].mean() < 0.7
    again = hidden_target(name, seed=1)
    assert np.array_equal(again.X, data.X)
    assert not np.array_equal(hidden_target(name, seed=2).X, data.X)
    if name in LATENT:
        assert np.allclose(data.source.mean(axis=0), 0)
        assert np.allclose(data.source.std(axis=0), 1)


def test_heart_rates_decide_who_is_target(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"LB": rng.uniform(100, 160, size=2126), "AC": rng.uniform(size=2126)}
    labels = {"NSP": rng.integers(1, 4, size=2126), "CLASS": rng.integers(1, 11, size=2126)}
    (tmp_path / "ctg").mkdir()
    pq.write_table(pa.table(columns | labels), tmp_path / "ctg" / "ctg.parquet")
    means = {}
    for shift in ("none", "target", "source"):
        data = cardiotocography(tmp_path, shift=shift, seed=7)
        assert len(data.X) == len(data.X_test) == 350
        means[shift] = data.X[:, 0].mean()
    assert means["source"] < means["none"] < means["target"]


def test_missing_files_and_unknown_names_are_named(tmp_path):
    with pytest.raises(InputError, match="ctg.parquet"):
        cardiotocography(tmp_path, shift="none", seed=0)
    with pytest.raises(InputError, match="Expected name"):
        hidden_target("F", seed=0)
