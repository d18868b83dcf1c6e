"""Labelled domain pairs: bounds, sizes, and a clear error where a file is missing."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada_lab.datasets.domain_pairs import CLASSIFICATIONS, REGRESSIONS, classifications, drifting, german


def test_generated_domains_are_bounded_and_drift():
    pair = drifting(0)
    assert np.linalg.norm(pair.train.X, axis=1).max() <= 1
    assert np.abs(pair.train.y).max() <= 1
    assert len(pair.train) == 1000
    assert len(pair.groups) == len(pair.source)
    fits = [
        np.linalg.lstsq(pair.source.X[pair.groups == g], pair.source.y[pair.groups == g], rcond=None)[0]
        for g in (0, 1)
    ]
    assert np.linalg.norm(fits[0] - fits[1]) > 0.1
    again = drifting(0)
    assert np.array_equal(pair.train.X, again.train.X)


@pytest.mark.parametrize("name", [*REGRESSIONS, *CLASSIFICATIONS])
def test_a_missing_file_is_named(name, tmp_path):
    with pytest.raises(InputError, match="--data"):
        (REGRESSIONS | CLASSIFICATIONS)[name](tmp_path, 0)


def test_german_credit_is_read_where_a_copy_is(tmp_path):
    assert set(classifications(tmp_path)) == set(CLASSIFICATIONS)
    rng = np.random.default_rng(0)
    names = ["laufkont", "laufzeit", "hoehe", "wohnzeit", "alter", "kredit"]
    rows = np.column_stack([rng.integers(1, 5, size=200) for _ in names])
    path = tmp_path / "german_credit" / "SouthGermanCredit.asc"
    path.parent.mkdir()
    lines = [" ".join(names), *(" ".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    assert "german" in classifications(tmp_path)
    pair = german(tmp_path, 0)
    there = int((rows[:, 3] >= 3).sum())
    assert len(pair.train) + len(pair.validation) + len(pair.test) == there
    assert len(pair.source) == 200 - there
    assert pair.source.X.shape[1] == 4
    assert pair.source.y.tolist() == (rows[rows[:, 3] < 3, 0] >= 3).astype(int).tolist()
    path.write_text("a b\n1 2\n")
    with pytest.raises(InputError, match="laufkont"):
        german(tmp_path, 0)
