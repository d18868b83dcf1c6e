"""F and J: gradients, and the reduced form."""

import numpy as np
import pytest

from privada.methods.reweighting import Penalties
from privada.methods.reweighting.questions.problem import lowest
from privada_lab import objectives

RNG = np.random.default_rng(0)
FULL = Penalties(alpha=0.4, kappa1=0.3, kappa2=0.2, kappa_inf=0.1, discrepancy=0.5, sharpness=20.0)


@pytest.mark.parametrize("which", ["f", "j"])
def test_gradients_are_differences(which):
    objective, gradient = getattr(objectives, f"objective_{which}"), getattr(objectives, f"gradient_{which}")
    losses, p = RNG.uniform(0, 2, 20), FULL.reference(12, 8)
    u = lowest(p) * RNG.uniform(1, 3, 20)
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
        assert objectives.reduced(loss, p, kappa) == pytest.approx(brute, abs=1e-8)
        huber = residual**2 if residual <= 0.5 else 2 * 0.5 * residual - kappa
        assert objectives.reduced(loss, p, kappa) == pytest.approx(p[0] * (huber + kappa) - kappa)
        u = objectives.best_u(loss, p, kappa)
        assert objectives.objective_f(loss, u, p, Penalties(alpha=0.5, kappa1=kappa)) == pytest.approx(
            objectives.reduced(loss, p, kappa)
        )
