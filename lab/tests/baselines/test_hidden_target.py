import numpy as np
import pytest

from privada.exceptions import InputError
from privada_lab.baselines import Majority, TargetTrained


@pytest.fixture
def shifted():
    """Public rows around 0; private ones around 0.5; the label's rule changes with the first feature."""
    rng = np.random.default_rng(0)
    public, private = rng.normal(0, 0.4, size=(600, 2)), rng.normal(0.5, 0.2, size=(600, 2))
    label = lambda X: (np.sign(X[:, 0]) * X[:, 1] > 0).astype(int)  # noqa: E731
    return public, label(public), private, label(private)


def test_majority_and_bad_input(shifted):
    _, _, private, truth = shifted
    assert Majority().fit(private, truth).score(private, truth) == max(truth.mean(), 1 - truth.mean())
    with pytest.raises(InputError, match="X"):
        TargetTrained().fit([[np.nan]], [0])
