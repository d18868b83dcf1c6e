"""Algorithm 2 as printed: only with a seed, stamped, one step size for all."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.reweighting import Penalties
from privada_lab.papers.nonconvex import paper_pncnvxadap, smoothness

RNG = np.random.default_rng(2)
X = RNG.normal(size=(120, 2)) / 3
Y = (X[:, 0] > 0).astype(int)
DATA = (X[:80], Y[:80], X[80:], Y[80:])


def fitted(**more):
    settings = {"epsilon": 500.0, "delta": 0.01, "steps": 60, "insecure_seed": 0, "A": 10.0}
    return paper_pncnvxadap(*DATA, penalties=Penalties(alpha=0.5), **(settings | more))


def test_it_runs_only_with_a_seed_and_is_stamped():
    with pytest.raises(InputError, match="runs only with insecure_seed="):
        fitted(insecure_seed=None)
    assert "not private as claimed" in repr(fitted())
    assert np.array_equal(fitted().coef, fitted().coef)


def test_it_stops_at_a_random_step_and_separates_the_classes():
    models = [fitted(insecure_seed=seed) for seed in range(12)]
    assert len({len(model.gradients) for model in models}) > 6
    longest = max(models, key=lambda model: len(model.gradients))
    assert np.mean((X @ longest.coef > 0) == Y) > 0.8
    assert np.linalg.norm(longest.coef) <= 10


def test_weights_stay_feasible():
    model = fitted(epsilon=0.1, insecure_seed=3)
    assert (model.u >= 1 / Penalties(alpha=0.5).reference(80, 40)).all()


def test_with_alpha_1_nothing_private_is_descended_on():
    models = [
        paper_pncnvxadap(
            *DATA[:3], labels, epsilon=1, delta=0.01, A=5, penalties=Penalties(alpha=1.0), insecure_seed=4
        )
        for labels in (Y[80:], 1 - Y[80:])
    ]
    assert np.array_equal(models[0].coef, models[1].coef)


def test_the_smoothness_is_the_losses_for_many_rows_and_no_less_for_few():
    plain = Penalties(alpha=0.3, kappa2=1.0, kappa_inf=1.0)
    many, few = (smoothness(plain, m=n, n=n, A=3.0) for n in (10**7, 5))
    assert many == pytest.approx(0.25, rel=1e-6)
    assert few > many
