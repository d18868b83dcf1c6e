"""CnvxAdap and NCnvxAdap, the solvers that need no noise."""

import numpy as np
import pytest
from scipy.optimize import minimize

from privada.exceptions import InputError
from privada.methods.linear.questions.losses import pull, values
from privada.methods.reweighting import Penalties
from privada.methods.reweighting.questions import problem
from privada_lab import objectives
from privada_lab.baselines.cnvx_adap import cnvx_adap, ncnvx_adap


def rows(m=12, n=8, d=3, seed=0):
    rng = np.random.default_rng(seed)
    Xs, Xt = rng.normal(size=(m, d)) / 2, rng.normal(size=(n, d)) / 2
    return (
        Xs,
        Xs @ [1, 0, 0][:d] + 0.3 * rng.normal(size=m),
        Xt,
        Xt @ [0, 1, 0][:d] + 0.3 * rng.normal(size=n),
    )


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
        return objectives.objective_f((X @ w - y) ** 2 + extra, u, p, penalties)

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
