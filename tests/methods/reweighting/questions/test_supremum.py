"""The exact discrepancy: brute force, the hard case, the sensitivity that noise is calibrated to."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.reweighting import Discrepancy, labelled, least_on_ball
from privada.methods.reweighting.questions.supremum import moments, of_moments, of_second_moments
from privada.privacy import PureDP


def brute(P, b, radius, points=400_000):
    rng = np.random.default_rng(0)
    w = rng.normal(size=(points, len(b)))
    w *= radius * rng.uniform(size=(points, 1)) ** (1 / len(b)) / np.linalg.norm(w, axis=1, keepdims=True)
    w = np.vstack([w, radius * w / np.linalg.norm(w, axis=1, keepdims=True)])
    return np.einsum("ij,jk,ik->i", w, P, w) - 2 * w @ b


@pytest.mark.parametrize("seed", range(8))
def test_the_least_value_is_below_every_point_and_attained(seed):
    rng = np.random.default_rng(seed)
    P, b = rng.normal(size=(3, 3)), rng.normal(size=3) * (seed % 3)
    P = P + P.T + (seed % 2) * 4 * np.eye(3)
    found = least_on_ball(P, b, 1.5)
    values = brute(P, b, 1.5)
    assert found.value <= values.min() + 1e-9
    assert found.value == pytest.approx(values.min(), abs=0.05)
    assert np.linalg.norm(found.point) <= 1.5 * (1 + 1e-12)
    w = found.point
    assert w @ P @ w - 2 * b @ w == pytest.approx(found.value, abs=1e-9)
    assert found.gap < 1e-8


@pytest.mark.parametrize("least", [0.0, 1e-14, 1e-9, 1e-4])
def test_the_hard_case_and_its_neighbourhood(least):
    """b (nearly) orthogonal to the least eigenvector: the value is continuous in b."""
    P, b = np.diag([-2.0, 1.0, 3.0]), np.array([least, 0.5, 0.1])
    found = least_on_ball(P, b, 2.0)
    exact = least_on_ball(P, np.array([0.0, 0.5, 0.1]), 2.0)
    assert found.value == pytest.approx(exact.value, abs=5 * least + 1e-9)
    assert found.gap < 1e-8
    assert np.linalg.norm(found.point) == pytest.approx(2.0)


def test_nothing_and_constants():
    assert least_on_ball(np.zeros((2, 2)), np.zeros(2), 1.0).value == 0
    X, y = np.ones((5, 2)), np.ones(5)
    assert labelled(X, y, X, y, radius=3.0).value == pytest.approx(0, abs=1e-12)


def test_the_value_against_brute_force():
    rng = np.random.default_rng(3)
    Xs, Xt = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) * [2, 0.5]
    ys, yt = rng.normal(size=40), rng.normal(size=30)
    found = labelled(Xs, ys, Xt, yt, radius=2.0)
    angle, length = np.meshgrid(np.linspace(0, 2 * np.pi, 400), np.linspace(0, 2, 200))
    W = np.column_stack([(length * np.cos(angle)).ravel(), (length * np.sin(angle)).ravel()])
    losses = [((X @ W.T - y[:, None]) ** 2).mean(axis=0) for X, y in ((Xt, yt), (Xs, ys))]
    assert found.value == pytest.approx(np.abs(losses[0] - losses[1]).max(), rel=1e-3)
    at = found.hypothesis
    there = ((Xt @ at - yt) ** 2).mean() - ((Xs @ at - ys) ** 2).mean()
    assert abs(there) == pytest.approx(found.value)


def test_the_local_discrepancy_is_that_of_residuals():
    rng = np.random.default_rng(4)
    Xs, Xt, ys, yt = (
        rng.normal(size=(30, 3)),
        rng.normal(size=(30, 3)),
        rng.normal(size=30),
        rng.normal(size=30),
    )
    center = rng.normal(size=3)
    local = labelled(Xs, ys, Xt, yt, radius=0.3, center=center)
    moved = labelled(Xs, ys - Xs @ center, Xt, yt - Xt @ center, radius=0.3)
    assert local.value == pytest.approx(moved.value)
    assert np.linalg.norm(local.hypothesis - center) <= 0.3 * (1 + 1e-9)
    assert local.value <= labelled(Xs, ys, Xt, yt, radius=np.linalg.norm(center) + 0.3).value + 1e-9


def test_without_labels_it_is_a_spectral_norm():
    rng = np.random.default_rng(5)
    Xs, Xt = rng.normal(size=(30, 3)), 2 * rng.normal(size=(30, 3))
    gap = Xt.T @ Xt / 30 - Xs.T @ Xs / 30
    value = of_second_moments(gap, 1.5).value
    assert value == pytest.approx(9 * np.abs(np.linalg.eigvalsh(gap)).max())


def neighbours(rng, n, d, A):
    """Records that break careless solvers: extremal, balanced, with no linear part."""
    yield np.tile(np.eye(d)[0], (n, 1)), -np.ones(n), np.zeros(d), 0.0
    balanced = np.where(np.arange(n)[:, None] % 2, 1.0, -1.0) * np.eye(d)[0]
    yield balanced, np.zeros(n), np.eye(d)[0], 0.01
    for _ in range(20):
        X = rng.normal(size=(n, d))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        x = rng.normal(size=d)
        yield X, rng.uniform(-1, 1, n), x / np.linalg.norm(x), rng.choice([-1.0, 1.0])


def test_one_row_moves_it_by_at_most_b_over_n():
    """privacy.md, section 4 (d): adversarial neighbours, the b = 0 case included."""
    rng, n, d, A = np.random.default_rng(6), 20, 3, 1.0
    S, a = rng.normal(size=(50, d)) / 3, rng.uniform(-1, 1, 50)
    B, moves = (A + 1) ** 2, []
    for source in ((S, a), (np.zeros((1, d)), np.zeros(1))):
        for X, y, x, label in neighbours(rng, n, d, A):
            before = labelled(*source, X, y, radius=A).value
            X2, y2 = X.copy(), y.copy()
            X2[0], y2[0] = x, label
            moves.append(abs(labelled(*source, X2, y2, radius=A).value - before))
    assert max(moves) <= B / n * (1 + 1e-9)
    assert max(moves) == pytest.approx(B / n, rel=1e-6)  # attained: n copies of (e₁, -1) and (0, 0)


def test_a_local_solver_would_jump():
    """privacy.md, section 4 (b): from w = 0 the gradient vanishes, and a label of 0.01 frees the solver."""
    n = 20
    X = np.where(np.arange(n)[:, None] % 2, 1.0, -1.0) * np.array([1.0, 0.0])
    exact = [of_moments(moments(X, y), 1.0).value for y in (np.zeros(n), np.r_[0.01, np.zeros(n - 1)])]
    assert exact[0] == pytest.approx(1.0)
    assert abs(exact[1] - exact[0]) <= 4 / n


def test_bad_input_is_named():
    x = np.ones((3, 2))
    with pytest.raises(InputError, match="one width"):
        labelled(x, np.ones(3), np.ones((3, 1)), np.ones(3), radius=1.0)
    with pytest.raises(InputError, match="radius"):
        labelled(x, np.ones(3), x, np.ones(3), radius=0.0)


def test_the_gap_is_far_below_the_tolerance_near_the_hard_case():
    """Moments of clipped rows whose slope has almost no part along the least eigenvector."""
    rng = np.random.default_rng(0)
    for trial in range(200):
        d = int(rng.integers(1, 12))
        eigen = np.sort(rng.uniform(-1, 1, size=d))
        eigen[: d // 2] = eigen[0] + 10.0 ** -rng.integers(2, 17) * np.arange(d // 2)
        V = np.linalg.qr(rng.normal(size=(d, d)))[0]
        g = rng.normal(size=d) * 10.0 ** -rng.integers(0, 18, size=d)
        g[0] = 0.0 if trial % 3 == 0 else g[0] * 10.0 ** -rng.integers(0, 40)
        gap = np.zeros((d + 1, d + 1))
        gap[:-1, :-1], gap[:-1, -1] = (V * eigen) @ V.T / 2, V @ g / max(1.0, np.linalg.norm(g))
        gap[-1] = gap[:, -1]
        for radius in (1e-3, 1.0, 30.0):
            assert of_moments(gap, radius).tolerance <= 1e-12 * (radius + 1) ** 2


def test_moments_that_no_clipped_rows_have_are_refused():
    with pytest.raises(InputError, match="source_moments"):
        Discrepancy(
            size=10,
            weights=np.zeros(1),
            transform=np.eye(1),
            shift=np.zeros(1),
            source_moments=1e6 * np.eye(2),
            radius=1.0,
            hypothesis_radius=1.0,
            guarantee=PureDP(epsilon=1.0, relation="replace-one"),
        )
