import numpy as np
import pytest

from privada.baselines import Majority, PrivateWeighting, TargetTrained
from privada.exceptions import InputError


@pytest.fixture
def shifted():
    """Public rows around 0; private ones around 0.5; the label's rule changes with the first feature."""
    rng = np.random.default_rng(0)
    public, private = rng.normal(0, 0.4, size=(600, 2)), rng.normal(0.5, 0.2, size=(600, 2))
    label = lambda X: (np.sign(X[:, 0]) * X[:, 1] > 0).astype(int)  # noqa: E731
    return public, label(public), private, label(private)


def test_weights_make_the_public_rows_look_like_the_private_ones(shifted):
    public, y, private, truth = shifted
    exact = PrivateWeighting(regularisation=1e-3).fit(public, y, target=private)
    moved = np.average(public, axis=0, weights=exact.weights_)
    assert np.all(moved > 0.2)
    plain = TargetTrained().fit(public, y)
    assert exact.score(private, truth) > plain.score(private, truth) + 0.05


def test_less_privacy_is_less_noise(shifted):
    public, y, private, _ = shifted
    exact = PrivateWeighting().fit(public, y, target=private).coef_
    off = [
        np.mean(
            [
                np.linalg.norm(
                    PrivateWeighting(epsilon=epsilon, rehearsal=seed).fit(public, y, target=private).coef_
                    - exact
                )
                for seed in range(8)
            ]
        )
        for epsilon in (0.1, 1.0, 10.0)
    ]
    assert off[0] > 3 * off[1] > 9 * off[2] > 0


def test_the_coefficients_move_no_further_than_the_noise_is_for(shifted):
    """Replace one private row by the farthest one: the move stays within R/(n λ)."""
    public, y, private, _ = shifted
    private = private[:50]
    other = private.copy()
    other[0] = [-9.0, -9.0]
    first, second = (PrivateWeighting().fit(public, y, target=rows).coef_ for rows in (private, other))
    assert 0 < np.linalg.norm(first - second) <= 1.0 / (50 * 0.01)


def test_majority_and_bad_input(shifted):
    public, y, private, truth = shifted
    assert Majority().fit(private, truth).score(private, truth) == max(truth.mean(), 1 - truth.mean())
    with pytest.raises(InputError, match="Expected target"):
        PrivateWeighting().fit(public, y)
    with pytest.raises(InputError, match="X"):
        TargetTrained().fit([[np.nan]], [0])
