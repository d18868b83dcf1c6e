"""DP-SGD by Opacus: its accountant beside ours, what it learns, that it never passes for private."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from privada.exceptions import InputError
from privada.privacy.accounting import accountant, curves
from privada.privacy.mechanism import gaussian_event
from privada_lab.baselines import DPSGDClassifier, DPSGDRegressor
from privada_lab.baselines.private.dpsgd import STAMPS, noise_multiplier

pytest.importorskip("opacus")

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(1500, 3))
Y = X @ [1.0, -1.0, 0.5]
CLASSES = np.where(Y > 0, "yes", "no")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_its_accountant_agrees_with_the_exact_curve_without_sampling(epsilon):
    """Sampling rate 1: T steps are one Gaussian of μ = √T/σ, which our accountant prices exactly."""
    steps = 50
    sigma = noise_multiplier(epsilon=epsilon, delta=1e-5, sample_rate=1.0, steps=steps)
    exact = math.sqrt(steps) / curves.gaussian_mu(epsilon=epsilon, delta=1e-5)
    assert 0.998 * exact <= sigma <= 1.03 * exact  # its bound on ε leaves room for an error of 0.01
    mu = math.sqrt(steps) / sigma
    assert 0.97 * epsilon <= accountant.epsilon(gaussian_event(mu), 1e-5) <= 1.002 * epsilon


@pytest.mark.parametrize(("epsilon", "rate"), [(1.0, 0.1), (1.0, 0.25), (4.0, 0.1)])
def test_its_accountant_agrees_with_privacy_loss_distributions(epsilon, rate):
    """Poisson samples under add/remove, by dp-accounting, on which our accountant stands."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    sigma = noise_multiplier(epsilon=epsilon, delta=1e-5, sample_rate=rate, steps=100)
    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), 100)
    found = PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(1e-5)
    assert 0.97 * epsilon <= found <= 1.01 * epsilon


def test_a_regression_learns_and_says_what_it_is():
    model = DPSGDRegressor(epsilon=4, delta=1e-5, norm_bound=1.0, insecure_seed=0).fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert model.epsilon_spent_ <= 4 * 1.01
    assert model.stamps_ == STAMPS
    assert str(model.guarantee_) == "(ε = 4, δ = 1e-05), add/remove one row"


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_a_classification_learns(kind):
    model = DPSGDClassifier(
        epsilon=2, delta=1e-5, norm_bound=1.0, classes=("no", "yes"), model=kind, insecure_seed=1
    )
    assert model.fit(X, CLASSES).score(X, CLASSES) > 0.9
    assert model.predict_proba(X[:4]).sum(axis=1) == pytest.approx(1)


def test_less_privacy_is_less_noise():
    found = [
        DPSGDRegressor(epsilon=e, delta=1e-5, norm_bound=1.0, epochs=4, insecure_seed=0).fit(X, Y)
        for e in (0.1, 10.0)
    ]
    assert found[0].noise_multiplier_ > 10 * found[1].noise_multiplier_
    assert found[0].score(X, Y) < found[1].score(X, Y)


def test_public_rows_help_where_little_may_be_learnt():
    alone = DPSGDRegressor(epsilon=0.1, delta=1e-5, norm_bound=1.0, epochs=2, insecure_seed=0)
    helped = clone(alone).fit(X, Y, Xs=X[:200], ys=Y[:200])
    assert helped.score(X, Y) > alone.fit(X, Y).score(X, Y)


def test_rehearsals_repeat_and_torchs_generator_is_left_alone():
    import torch

    before = torch.get_rng_state()
    model = DPSGDRegressor(epsilon=1, delta=1e-5, norm_bound=1.0, epochs=2, model="mlp", insecure_seed=3)
    first = model.fit(X, Y).predict(X[:5])
    assert np.array_equal(clone(model).fit(X, Y).predict(X[:5]), first)
    assert not np.array_equal(clone(model).set_params(insecure_seed=4).fit(X, Y).predict(X[:5]), first)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"insecure_seed": None}, "torch's noise"),
        ({"norm_bound": None}, "norm_bound"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": None}, "delta"),
        ({"model": "tree"}, "model"),
        ({"epochs": 0}, "epochs"),
        ({"sample_rate": 0.0}, "sample_rate"),
        ({"clip": 0.0}, "clip"),
        ({"label_bound": 0.0}, "label_bound"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_settings_are_named(change, said):
    settings = {"epsilon": 1.0, "delta": 1e-5, "norm_bound": 1.0, "insecure_seed": 0} | change
    with pytest.raises(InputError, match=said):
        DPSGDRegressor(**settings).fit(X, Y)


def test_classes_are_never_taken_from_the_rows():
    with pytest.raises(InputError, match="classes"):
        DPSGDClassifier(epsilon=1, delta=1e-5, norm_bound=1.0, insecure_seed=0).fit(X, CLASSES)
