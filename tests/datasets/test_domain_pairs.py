"""Labelled domain pairs: bounds, sizes, and a clear error where a file is missing."""

import numpy as np
import pytest

from privada.datasets.domain_pairs import CLASSIFICATIONS, REGRESSIONS, drifting
from privada.exceptions import InputError


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
