"""The printed protocol: its product form, its accounting, its faults."""

import itertools
import math

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.privacy import SecureNoise
from privada.privacy.accounting import accountant
from privada_lab.papers.summarization import (
    PrintedParameters,
    Tilted,
    derived_bid,
    paper_auction,
    paper_features,
    paper_hash,
    paper_summary,
    printed_bid,
    printed_total,
    true_total,
)

X = np.random.default_rng(0).normal(size=(40, 3))
H = paper_features(X, dimension=8, gamma=0.1, random_state=0)


def test_they_run_in_rehearsal_only_and_say_so():
    for run in (
        lambda: paper_hash(H, epsilon=0.1, iterations=3),
        lambda: paper_auction([1.0, 2.0], epsilon=0.1),
        lambda: paper_summary([H], H, H, 3),
    ):
        with pytest.raises(InputError, match="not private as claimed"):
            run()
    with pytest.raises(InputError, match="not private as claimed"):
        paper_auction([1.0, 2.0], epsilon=0.1, noise=SecureNoise())
    made = paper_summary([H[:20], H[20:]], H[:10], H[10:15], 6, insecure_seed=1)
    assert "not private as claimed" in repr(made)
    assert len({*zip(made.owner.tolist(), made.index.tolist(), strict=True)}) == 6
    assert made.points_seen >= 6


def test_norms_reach_beyond_one():
    """privacy.md, section 5 (b): √2 as written, which is why the sound embedding is paired."""
    norms = np.linalg.norm(paper_features(X, dimension=2, gamma=0.1, random_state=0), axis=1)
    assert 1 < norms.max() <= math.sqrt(2)


def test_the_product_form_is_brute_force():
    """Weights over all of S^d, tilted one coordinate at a time, on a small grid."""
    table = Tilted(3, 0.5)
    points = np.array(list(itertools.product(table.grid, repeat=3)))
    weights = np.ones(len(points))
    for coordinate, by in ((0, 0.7), (2, -1.3), (0, 0.4), (1, 2.0)):
        table.tilt(coordinate, by)
        weights *= np.exp(by * points[:, coordinate])
        assert table.means == pytest.approx(weights @ points / weights.sum())


def test_multiplicative_weights_approach_the_mean_with_little_noise():
    found = paper_hash(H, epsilon=1e4, iterations=4000, insecure_seed=0)
    assert np.abs(found - H.mean(axis=0)).max() < 0.2
    noisy = paper_hash(H, epsilon=0.01, iterations=1656, insecure_seed=0)
    assert np.abs(noisy - H.mean(axis=0)).max() > np.abs(found - H.mean(axis=0)).max()


def test_the_printed_bid_prefers_what_it_should_avoid():
    target, broadcast = H[:10].mean(axis=0), H[20:].mean(axis=0)
    printed, derived = printed_bid(H, target, broadcast, 50), derived_bid(H, target, broadcast, 50)
    assert np.corrcoef(printed, derived)[0, 1] < -0.9


@pytest.mark.parametrize(
    ("case", "claimed", "true"),
    [
        ((0.01, 1656, 0.01), 1.4014, {(1, 1): 1.350, (1, 2): 2.435, (2, 2): 3.301}),
        ((0.01 / math.sqrt(500), 500, 1e-4), 0.0430, {(2, 2): 0.0762, (4, 4): 0.1657}),
    ],
)
def test_the_totals_are_understated(case, claimed, true):
    """privacy.md, section 5 (b), the table of totals."""
    assert printed_total(*case) == pytest.approx(claimed, abs=5e-5)
    for (total, score), bound in true.items():
        found = true_total(*case, sum_reach=total, score_reach=score)
        assert found == pytest.approx(bound, abs=6e-4)


def test_the_measurements_alone_already_pass_the_claim():
    """privacy.md, section 5 (b): 1656 Laplace draws at 2 x .01 have ε >= 1.751 at δ = .01 (replace-one)."""
    from dp_accounting import LaplaceDpEvent, SelfComposedDpEvent

    event = SelfComposedDpEvent(LaplaceDpEvent(1 / 0.02), 1656)
    assert accountant.epsilon(event, 0.01) == pytest.approx(1.751, abs=0.01)


def test_the_printed_parameters_are_the_defaults():
    given = PrintedParameters()
    assert (given.dimension, given.gamma, given.first_iterations, given.later_iterations) == (
        140,
        0.1,
        1656,
        5,
    )
    assert round(given.dimension**1.5) == pytest.approx(given.first_iterations, abs=1)
