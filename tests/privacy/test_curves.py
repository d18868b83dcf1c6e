import math

import numpy as np
import pytest
from scipy.stats import norm

from privada.privacy.accounting import curves

TABLE = {  # privacy.md, section 0
    1e-5: (7.0318, 3.7306, 1.9938, 1.3906, 1.0812, 0.6002, 0.4999),
    1e-6: (8.0576, 4.2247, 2.2305, 1.5439, 1.1935, 0.6529, 0.5411),
    1e-8: (9.8635, 5.1003, 2.6529, 1.8186, 1.3956, 0.7484, 0.6158),
}
EPSILONS = (0.5, 1, 2, 3, 4, 8, 10)


@pytest.mark.parametrize("delta", TABLE)
def test_the_table_of_sigmas(delta):
    sigmas = [curves.gaussian_sigma(epsilon=epsilon, delta=delta) for epsilon in EPSILONS]
    np.testing.assert_allclose(sigmas, TABLE[delta], atol=5e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 20])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01])
def test_calibration_never_overspends_and_wastes_nothing(epsilon, delta):
    mu = curves.gaussian_mu(epsilon=epsilon, delta=delta)
    assert curves.gaussian_delta(epsilon, mu) <= delta * (1 + 1e-12)
    assert curves.gaussian_delta(epsilon, mu * (1 + 1e-6)) > delta
    assert curves.gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-9)


def test_the_gaussian_curve_is_the_hockey_stick():
    mu, epsilon = 0.7, 0.9
    x = np.linspace(-12, 12, 2_000_001)
    gap = norm.pdf(x, loc=mu) - math.exp(epsilon) * norm.pdf(x)
    assert curves.gaussian_delta(epsilon, mu) == pytest.approx(np.trapezoid(np.maximum(gap, 0), x), rel=1e-6)


def test_zcdp_constants_of_the_specification():
    assert curves.zcdp_rho(epsilon=1, delta=1e-5) == pytest.approx(0.03056, abs=5e-6)
    assert curves.zcdp_epsilon(1e-5, curves.zcdp_rho(epsilon=1, delta=1e-5)) == pytest.approx(1, rel=1e-6)


def test_zcdp_delta_is_the_best_order():
    rho, epsilon = 0.2, 2.0
    orders = 1 + np.exp(np.linspace(-6, 6, 4001))
    grid = min(curves.renyi_delta(epsilon, a, rho * a) for a in orders)
    assert curves.zcdp_delta(epsilon, rho) <= grid * (1 + 1e-9)
    assert curves.zcdp_delta(epsilon, rho) == pytest.approx(grid, rel=1e-5)


def test_pure_epsilon_of_the_baselines_of_paper_000():
    # rho = 3: eps tanh(eps/2) = 3 at 3.244, the Laplace constant reaches 3 at 3.981
    assert curves.pure_to_zcdp(3.244) == pytest.approx(3, abs=2e-3)
    assert curves.laplace_to_zcdp(3.981) == pytest.approx(3, abs=2e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_pure_to_zcdp_is_the_supremum_over_orders(epsilon):
    p = 1 / (1 + math.exp(-epsilon))
    orders = 1 + np.exp(np.linspace(-8, 5, 3001))
    divergences = [
        math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1) for a in orders
    ]
    assert max(d / a for d, a in zip(divergences, orders, strict=True)) == pytest.approx(
        curves.pure_to_zcdp(epsilon), rel=1e-3
    )


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_pure_to_gaussian_dominates_at_every_delta(epsilon):
    mu = curves.pure_to_gaussian(epsilon)
    for at in np.linspace(0, epsilon, 50):
        assert curves.pure_delta(at, epsilon) <= curves.gaussian_delta(at, mu) + 1e-12
    smaller = [
        curves.gaussian_delta(at, mu * 0.98) - curves.pure_delta(at, epsilon)
        for at in np.linspace(0, epsilon, 50)
    ]
    assert min(smaller) < 0, "a smaller mu must fail somewhere"


def test_renyi_capacity_and_epsilon_are_inverse():
    order = curves.best_order(epsilon=2, delta=1e-6)
    capacity = curves.renyi_capacity(epsilon=2, delta=1e-6, order=order)
    assert curves.renyi_epsilon(1e-6, order, capacity) == pytest.approx(2)
    assert curves.renyi_delta(2, order, capacity) == pytest.approx(1e-6)
    assert curves.renyi_epsilon(1e-6, order, 0.0) == 0


def test_no_epsilon_overflows():
    assert curves.pure_to_gaussian(1e6) == math.inf
    assert curves.response(1.0) == pytest.approx(2 / (1 + math.e), rel=1e-15)
    assert (curves.response(0.0), curves.response(1e6)) == (1.0, 0.0)


def exact_delta(epsilon, mu):
    import mpmath

    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-13, 1e-9, 1e-7, 9.9e-4, 1.1e-3, 0.1, 3.0])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 3.0, 7.0, 15.0])
def test_the_gaussian_curve_is_right_at_every_scale(mu, ratio):
    """Two probabilities that agree in 12 digits were subtracted: at ε = 1e-12 δ was off by 3e-4."""
    exact = exact_delta(ratio * mu, mu)
    assert curves.gaussian_delta(ratio * mu, mu) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-12), (1e-9, 1e-12), (1e-12, 1e-15), (1e-3, 1e-12)])
def test_tiny_budgets_are_kept(epsilon, delta):
    mu = curves.gaussian_mu(epsilon=epsilon, delta=delta)
    assert exact_delta(epsilon, mu) <= delta * (1 + 1e-9)
    assert exact_delta(epsilon, mu * (1 + 1e-8)) > delta


def test_deltas_of_many_epsilons_are_those_of_each():
    epsilons = np.array([0.0, 0.4, 2.0, 9.0])
    np.testing.assert_allclose(
        curves.zcdp_deltas(epsilons, 0.3), [curves.zcdp_delta(e, 0.3) for e in epsilons], rtol=1e-12
    )
    np.testing.assert_allclose(
        np.exp(curves.gaussian_log_deltas(epsilons, 0.8)),
        [curves.gaussian_delta(e, 0.8) for e in epsilons],
        rtol=1e-12,
    )
