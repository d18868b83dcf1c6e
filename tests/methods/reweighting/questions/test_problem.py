"""F and J: gradients, the reduced form, sensitivities, and the solvers that need no noise."""

import numpy as np
import pytest
from scipy.optimize import minimize

from privada.exceptions import InputError
from privada.lab.baselines.cnvx_adap import cnvx_adap, ncnvx_adap
from privada.methods.linear.questions.losses import largest_pull, pull, values
from privada.methods.reweighting import Bounds, Penalties
from privada.methods.reweighting.questions import problem

RNG = np.random.default_rng(0)
FULL = Penalties(alpha=0.4, kappa1=0.3, kappa2=0.2, kappa_inf=0.1, discrepancy=0.5, sharpness=20.0)


def rows(m=12, n=8, d=3, seed=0):
    rng = np.random.default_rng(seed)
    Xs, Xt = rng.normal(size=(m, d)) / 2, rng.normal(size=(n, d)) / 2
    return (
        Xs,
        Xs @ [1, 0, 0][:d] + 0.3 * rng.normal(size=m),
        Xt,
        Xt @ [0, 1, 0][:d] + 0.3 * rng.normal(size=n),
    )


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


@pytest.mark.parametrize(
    "penalties",
    [
        Penalties(alpha=0.4, kappa1=0.05, discrepancy=0.3),
        Penalties(alpha=0.4, kappa1=0.05, kappa2=0.5, discrepancy=0.3),
        Penalties(alpha=0.4, kappa1=0.05, kappa2=0.2, kappa_inf=2.0, discrepancy=0.3),
    ],
    ids=["reduced", "norm", "norm and largest"],
)
def test_cnvx_adap_is_optimal(penalties):
    """No feasible point found by a general solver, or at random, is better."""
    Xs, ys, Xt, yt = rows()
    found = cnvx_adap(Xs, ys, Xt, yt, radius=0.8, penalties=penalties)
    X, y, p = np.vstack([Xs, Xt]), np.r_[ys, yt], penalties.reference(12, 8)
    extra = np.r_[np.full(12, penalties.discrepancy), np.zeros(8)]
    low = problem.lowest(p)

    def value(w, u):
        return problem.objective_f((X @ w - y) ** 2 + extra, u, p, penalties)

    assert np.linalg.norm(found.coef) <= 0.8 * (1 + 1e-9)
    assert np.all(found.u >= low * (1 - 1e-9))
    assert value(found.coef, found.u) == pytest.approx(found.objective)

    def free(z):
        w = z[:3] * min(1, 0.8 / max(np.linalg.norm(z[:3]), 1e-12))
        return value(w, low * (1 + np.exp(np.minimum(z[3:], 50))))

    start = np.r_[found.coef, np.log(np.maximum(found.u / low - 1, 1e-8))]
    rng = np.random.default_rng(2)
    for spread in (0.0, 0.1, 1.0):
        best = minimize(free, start + spread * rng.normal(size=len(start)), method="L-BFGS-B").fun
        assert best >= found.objective - 2e-6 * abs(found.objective)


def test_alpha_at_its_ends_ignores_one_side():
    Xs, ys, Xt, yt = rows(m=40, n=40)
    target = cnvx_adap(Xs, ys, Xt, yt, radius=50.0, penalties=Penalties(alpha=0.0, kappa1=1e6))
    assert target.coef == pytest.approx(np.linalg.lstsq(Xt, yt, rcond=None)[0], abs=1e-6)
    assert np.isinf(target.u[:40]).all()
    source = cnvx_adap(Xs, ys, Xt, yt, radius=50.0, penalties=Penalties(alpha=1.0, kappa1=1e6))
    assert source.coef == pytest.approx(np.linalg.lstsq(Xs, ys, rcond=None)[0], abs=1e-6)


def test_one_private_row_a_constant_label_and_collinear_columns():
    Xs, ys, Xt, yt = rows(m=40, n=1)
    assert np.isfinite(cnvx_adap(Xs, ys, Xt, yt, radius=5.0).coef).all()
    constant = cnvx_adap(Xs, np.ones(40), Xt, np.ones(1), radius=5.0)
    assert np.isfinite(constant.coef).all()
    doubled = cnvx_adap(np.hstack([Xs, Xs]), ys, np.hstack([Xt, Xt]), yt, radius=5.0)
    assert np.isfinite(doubled.coef).all()
    with pytest.raises(InputError, match="finite"):
        cnvx_adap(Xs, np.full(40, np.nan), Xt, yt, radius=1.0)


def test_ncnvx_adap_comes_to_rest():
    """The norm of the gradient mapping falls with T (Theorem 4 without noise)."""
    Xs, ys, Xt, yt = rows(m=60, n=40)
    X, y = np.vstack([Xs, Xt]), (np.r_[ys, yt] > 0).astype(float)

    def loss(w):
        scores = (X @ w)[:, None]
        push = pull("logistic", scores, y, 1e9)[:, 0]
        return values("logistic", scores, y), lambda q: X.T @ (q * push)

    record = []
    penalties = Penalties(alpha=0.4, kappa1=0.5, kappa2=0.01, kappa_inf=0.01)
    found = ncnvx_adap(loss, m=60, n=40, start=np.zeros(3), radius=3.0, penalties=penalties, record=record)
    assert record[-1] < 0.02 * record[0]
    assert np.all(found.u >= problem.lowest(penalties.reference(60, 40)) * (1 - 1e-9))


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
