"""The printed noise of supervised adaptation is what the lab draws, and is caught by the auditors.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds; of a replay: none.
"""

import numpy as np
import pytest
from scipy.special import ndtri

from privada.audit import audit_mechanism, replay
from privada.audit.transcript import coupled
from privada.methods.linear.owner import scored
from privada.methods.reweighting import Bounds, ConvexAdaptation, Penalties
from privada.methods.reweighting.example import SIZE, domains, example
from privada.parties import Rows
from privada.privacy import ApproxDP, PureDP
from privada.privacy.bounds import Ball, Grid
from privada.privacy.mechanism import Gaussian, Plan
from privada_lab.papers.reweighting import paper_discrepancy, paper_pcnvxadap, printed_mu, printed_scales

SOURCE, LABELS, TARGET, ANSWERS = domains()


BOUNDS = Bounds(A=1.0, r=1.0)


class Printed(ConvexAdaptation):
    """PCnvxAdap with `paper`'s own noise, as a question; never registered, so never charged."""

    answered_by = f"{__name__}:answer_printed"

    def planned(self):
        left, claimed = (1 - self.penalties.alpha) / self.size, self.guarantee
        scales = printed_scales(
            epsilon=claimed.epsilon,
            delta=claimed.delta,
            steps=self.steps,
            size=self.size,
            alpha=self.penalties.alpha,
            bounds=self.bounds,
        )
        draws = {}
        for name, reach, scale in (
            ("gradient", 2 * self.largest_gradient, scales[0] / left),
            ("weights", self.largest_loss, scales[1] / left**2),
        ):
            draw = Gaussian(sensitivity=reach, scale=scale, grid=Grid.finer_than(reach * 2.0**-24))
            draws |= {f"{name}_{t}": draw for t in range(self.steps)}
        return Plan(draws=draws)


def answer_printed(question, rows, draw):
    """Gradients of w, and of u in the order of the rows, at points that the noisy ones lead to."""
    (batch,) = rows.batches()
    X, w = Ball(radius=question.r).clip(batch.X), np.zeros(question.shape)
    for t in range(question.steps):
        grids = [question.plan.draws[f"{name}_{t}"].grid for name in ("gradient", "weights")]
        push = 2 * (scored(X, w[:, None], np.zeros(1))[:, 0] - batch.y)
        slope = draw(f"gradient_{t}", grids[0].truncate(push[:, None] * X).sum(axis=0))
        draw(f"weights_{t}", grids[1].truncate(push**2 / 4))
        w = w - slope / np.linalg.norm(slope) * question.A / question.steps
    return {"coef": w}


def drawn_scales(*, n, alpha, seed, **printed):
    """Both σ of `paper_pcnvxadap`, worked out from what it returns after two steps.

    Its noise is normal quantiles of seeded numbers. At the first step w is 0, and so are all labels: the
    gradient of w is noise alone. The private rows share one exact slope of u, ``κ₁ p²``, whose step size
    is what their next u have in common beside the noise that tells them apart.
    """
    X, zero, p = np.tile([[0.6, 0.8]], (n, 1)), np.zeros(n), (1 - alpha) / n
    penalties, noise = Penalties(alpha=alpha), coupled(seed)
    made = paper_pcnvxadap(
        X, zero, X, zero, steps=2, penalties=penalties, bounds=BOUNDS, insecure_seed=seed, **printed
    )
    w, u = ndtri(noise.uniform((2,))), ndtri(noise.uniform((n,)))
    moved = 2 * made.u[n:] - 2 / p  # u after a step, less its start: projected to 0 or above
    kept = moved > 1e-9 / p
    assert kept.sum() >= 3
    slope, common = np.polyfit(u[kept], moved[kept], 1)
    assert moved[kept] == pytest.approx(slope * u[kept] + common, rel=1e-6)
    return made.gradients[0] / w, slope / common * penalties.kappa1 * p**2


@pytest.mark.parametrize(("epsilon", "delta"), [(15.0, 0.01), (1.0, 1e-5)])
def test_the_paper_draws_the_noise_that_it_prints(epsilon, delta):
    """σ = 2 s √(T log(2/δ))/ε, of both gradients, is what comes out, and amounts to `printed_mu`."""
    n, alpha = 40, 0.3
    s = 2 * BOUNDS.G * (1 - alpha) / n, BOUNDS.B * ((1 - alpha) / n) ** 2
    sigma = [2 * each * np.sqrt(2 * np.log(2 / delta)) / epsilon for each in s]
    first, second = drawn_scales(n=n, alpha=alpha, seed=3, epsilon=epsilon, delta=delta)
    assert first == pytest.approx([sigma[0]] * 2, rel=1e-9)
    assert second == pytest.approx(sigma[1], rel=1e-6)
    mu = np.sqrt(2 * ((s[0] / first[0]) ** 2 + (s[1] / second) ** 2))
    assert mu == pytest.approx(printed_mu(epsilon, delta), rel=1e-6)
    said = printed_scales(epsilon=epsilon, delta=delta, steps=2, size=n, alpha=alpha, bounds=BOUNDS)
    assert said == pytest.approx(sigma, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "passes"), [(7.5, True), (15.0, False)])
def test_the_printed_noise_is_caught_at_fifteen(epsilon, passes):
    """privacy.md, section 4 (b): at (15, 0.01) the printed σ has a true δ of 0.126.

    No black box of any affordable number of trials can show an epsilon of 15; the replay auditor adds up
    what the draws cost.
    """
    question = Printed(
        size=SIZE,
        source=SOURCE,
        source_labels=LABELS,
        penalties=Penalties(alpha=0.3),
        A=1.0,
        steps=5,
        guarantee=ApproxDP(epsilon=epsilon, delta=0.01, relation="replace-one"),
    )
    other = TARGET.copy()
    other[0] = [1.0, -1.0]
    sides = [Rows(X, schema=example().schema, y=ANSWERS) for X in (TARGET, other)]
    assert replay(question, *sides).passed is passes


@pytest.mark.statistical
def test_the_printed_discrepancy_noise_is_caught():
    """Lap(B/n) whatever epsilon is: claimed 0.25 for its half of 0.5, true 1."""
    n, seeds = 20, iter(range(10**6))
    X, y = np.tile([[1.0, 0.0]], (n, 1)), -np.ones(n)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = 0.0, 0.0
    zero = np.zeros((1, 2)), np.zeros(1)

    def printed(side):
        return np.array([paper_discrepancy(*zero, *side, bounds=BOUNDS, insecure_seed=next(seeds))])

    claimed = PureDP(epsilon=0.25, relation="replace-one")
    result = audit_mechanism(printed, (X, y), (other, labels), claimed=claimed, trials=1000)
    assert not result.passed
    assert result.epsilon_lower > 0.3
