"""F and J: gradients, the reduced form, and sensitivities."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.linear.questions.losses import largest_pull, pull, values
from privada.methods.reweighting import Bounds, Penalties
from privada.methods.reweighting.questions import problem

RNG = np.random.default_rng(0)
FULL = Penalties(alpha=0.4, kappa1=0.3, kappa2=0.2, kappa_inf=0.1, discrepancy=0.5, sharpness=20.0)


@pytest.mark.parametrize("which", ["f", "j"])
def test_gradients_are_differences(which):
    objective, gradient = getattr(problem, f"objective_{which}"), getattr(problem, f"gradient_{which}")
    losses, p = RNG.uniform(0, 2, 20), FULL.reference(12, 8)
    u = problem.lowest(p) * RNG.uniform(1, 3, 20)
    exact = gradient(losses, u, p, FULL)
    for i in range(20):
        step = np.zeros(20)
        step[i] = 1e-5 * u[i]
        slope = (objective(losses, u + step, p, FULL) - objective(losses, u - step, p, FULL)) / (2e-5 * u[i])
        assert slope == pytest.approx(exact[i], rel=1e-5, abs=1e-9)


def test_the_reduced_form_is_a_huber_loss():
    """Minimising F over u gives the closed form; in the residual, the Huber loss of threshold √κ₁."""
    kappa, p = 0.25, np.array([0.01])
    for residual in np.linspace(0, 3, 40):
        loss = np.array([residual**2])
        grid = np.linspace(1 / p[0], 20 / p[0], 200_001)
        brute = (loss[0] / grid + kappa * p[0] ** 2 * grid).min() - kappa
        assert problem.reduced(loss, p, kappa) == pytest.approx(brute, abs=1e-8)
        huber = residual**2 if residual <= 0.5 else 2 * 0.5 * residual - kappa
        assert problem.reduced(loss, p, kappa) == pytest.approx(p[0] * (huber + kappa) - kappa)
        u = problem.best_u(loss, p, kappa)
        assert problem.objective_f(loss, u, p, Penalties(alpha=0.5, kappa1=kappa)) == pytest.approx(
            problem.reduced(loss, p, kappa)
        )


def test_bounds_hold_and_the_diameter_is_smaller_than_twice_the_gradient():
    bounds = Bounds(A=2.0, r=1.5)
    rng, gradients = np.random.default_rng(1), []
    w = rng.normal(size=3)
    w *= bounds.A / np.linalg.norm(w)
    for _ in range(4000):
        x = rng.normal(size=3)
        x *= bounds.r / np.linalg.norm(x) * rng.choice([0, 0.5, 1.0])
        y = rng.choice([-1.0, 1.0])
        assert (w @ x - y) ** 2 <= bounds.B * (1 + 1e-12)
        gradients.append(2 * (w @ x - y) * x)
        assert np.linalg.norm(gradients[-1]) <= bounds.G * (1 + 1e-12)
    G = np.array(gradients)
    gaps = np.linalg.norm(G[:2000] - G[2000:], axis=1)
    assert 0.7 * bounds.diameter < gaps.max() <= bounds.diameter * (1 + 1e-12) < 2 * bounds.G


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("threshold", [0.05, 0.6, 1.2564, 3.0])
def test_no_pull_is_larger_than_its_bound(loss, threshold):
    rng = np.random.default_rng(3)
    K = 4 if loss == "softmax" else 1
    scores = rng.normal(size=(20_000, K)) * rng.choice([0.1, 1, 5, 50], size=(20_000, 1))
    y = rng.normal(size=20_000) if loss == "squared" else rng.integers(max(K, 2), size=20_000)
    sizes = np.linalg.norm(pull(loss, scores, y, threshold), axis=1)
    bound = largest_pull(loss, threshold)
    assert sizes.max() <= bound * (1 + 1e-12)
    assert sizes.max() > 0.9 * bound


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_record_without_loss_pulls_with_nothing(loss):
    width = 1 if loss == "logistic" else 2
    scores = np.full((2, width), 200.0, dtype=np.float32) * np.array([1, -1][:width], dtype=np.float32)
    y = np.array([1, 1]) if loss == "logistic" else np.array([0, 0])
    assert (pull(loss, scores, y, np.float32(0.25)) == 0).all()


def test_pulls_are_slopes_of_the_reduced_loss():
    rng = np.random.default_rng(4)
    for loss, scale in (("logistic", 1.0), ("softmax", 1.0)):
        K = 3 if loss == "softmax" else 1
        scores, y = 3 * rng.normal(size=(50, K)), rng.integers(max(K, 2), size=50)
        kappa = 0.4

        def reduced(s, loss=loss, y=y, kappa=kappa):
            each = values(loss, s, y)
            return np.where(each <= kappa, each, 2 * np.sqrt(kappa * each) - kappa)

        for o in range(K):
            step = np.zeros(K)
            step[o] = 1e-6
            slope = scale * (reduced(scores + step) - reduced(scores - step)) / 2e-6
            assert slope == pytest.approx(pull(loss, scores, y, kappa)[:, o], abs=1e-5)


def test_bad_parameters_are_named():
    for wrong in ({"alpha": 1.5}, {"alpha": 0.5, "kappa1": 0}, {"alpha": 0.5, "kappa2": -1}):
        with pytest.raises(InputError, match=next(name for name in reversed(wrong))):
            Penalties(**wrong)
    with pytest.raises(InputError, match="A"):
        Bounds(A=-1.0)
