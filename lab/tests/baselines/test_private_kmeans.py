"""Centres by private swaps: costs, sensitivities, calibration."""

import math

import numpy as np
import pytest

from privada.audit import Sample
from privada.audit.transcript import coupled, witnessed
from privada.exceptions import InputError
from privada.parties.answering import answer_rows
from privada.parties.rows import Rows
from privada.parties.schema import Schema
from privada.privacy import ZCDP, PureDP
from privada.privacy.accounting import curves
from privada_lab.baselines.private import _kernels, private_kmeans
from privada_lab.baselines.private.private_kmeans import SwappedCenters

PURE = PureDP(epsilon=4.0, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=2, size=40)


def question(guarantee=PURE, **more):
    public = {"n_clusters": 4, "width": 2, "norm_bound": 0.8, "depth": 3, "n_swaps": 3}
    return SwappedCenters(**(public | {"guarantee": guarantee} | more))


def sample():
    """Two piles and some scattered rows, duplicates among them."""
    rng = np.random.default_rng(0)
    piles = np.repeat([[0.3, 0.3], [-0.5, 0.2]], 15, axis=0)
    return Sample.of(np.vstack([piles, rng.uniform(-1, 1, size=(10, 2))]), schema=SCHEMA)


def test_zcdp_is_calibrated_fairly():
    """At ρ = 3 the paper runs at ε = √(ρ/2) = 1.22; √(2ρ) = 2.45 and ε tanh(ε/2) = ρ, 3.24, also keep it."""
    asked = question(ZCDP(rho=3, relation="add/remove"))
    epsilon = math.fsum(draw.epsilon for draw in asked.plan.draws.values())
    assert curves.pure_to_zcdp(3.244) == pytest.approx(3, abs=2e-3)
    assert epsilon > 3.244


def test_swap_costs_are_those_of_every_swap():
    rng = np.random.default_rng(3)
    costs = rng.integers(0, 50, size=(30, 7))
    for chosen in (np.array([2]), np.array([0, 3, 3, 6])):
        table = _kernels.swap_costs(costs, chosen)
        for j in range(7):
            for s in range(len(chosen)):
                swapped = chosen.copy()
                swapped[s] = j
                assert table[j, s] == costs[:, swapped].min(axis=1).sum()


def test_no_row_moves_a_cost_by_more_than_its_sensitivity():
    """Brute force: opposite ends of the ball cost as much as there is, and no more."""
    asked = question()
    most = asked.plan.draws["best"].sensitivity
    from privada_lab.baselines.private.private_kmeans import _costs

    rng = np.random.default_rng(0)
    ends = rng.normal(size=(200, 2))
    ends *= 0.8 / np.linalg.norm(ends, axis=1, keepdims=True)
    found = _costs(asked, ends, np.vstack([-ends, ends]))
    assert found.min() == 0
    assert 0.9999 * most < found.max() <= most


def test_costs_that_are_not_kept_are_the_same(monkeypatch):
    """All costs at once took memory with the number of rows: an answer failed at owners of many."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(500, 2))
    schema = Schema.of_numbers(bounds=(-1, 1), width=2)
    asked = SwappedCenters(
        n_clusters=3, width=2, norm_bound=1.0, guarantee=PureDP(epsilon=50.0, relation="add/remove")
    )
    calls, kept = witnessed(asked, Rows(X, schema=schema), coupled(0))
    monkeypatch.setattr(private_kmeans, "MOST_COSTS", 1000)
    again, anew = witnessed(asked, Rows(X, schema=schema), coupled(0))
    assert all(np.array_equal(a.exact, b.exact) for a, b in zip(calls, again, strict=True))
    assert np.array_equal(kept["centers"], anew["centers"])


def test_a_swap_is_chosen_and_means_lie_in_the_ball(rehearsal):
    """With hardly any noise two piles are found."""
    asked = question(PureDP(epsilon=1e4, relation="add/remove"), n_clusters=2)
    found = answer_rows(asked, sample().rows(), noise=rehearsal)
    assert (np.linalg.norm(found["centers"], axis=1) <= 0.8).all()
    for pile in ([0.3, 0.3], [-0.5, 0.2]):
        assert np.linalg.norm(found["centers"] - pile, axis=1).min() < 0.3
    assert found["weights"].sum() == pytest.approx(40, abs=2)


def test_no_rows_still_give_as_many_centres(rehearsal):
    none = Rows(np.zeros((0, 2)), schema=Schema.of_numbers(bounds=(-1, 1), width=2))
    found = answer_rows(question(), none, noise=rehearsal)
    assert found["centers"].shape == (4, 2)


@pytest.mark.parametrize("name", ["n_clusters", "width", "depth", "n_swaps", "norm_bound"])
def test_nothing_and_less_are_refused_by_name(name):
    with pytest.raises(InputError, match=name):
        question(**{name: 0})


def test_many_features_are_mapped_by_a_public_matrix_into_the_ball():
    wide = question(width=private_kmeans.NARROW + 5)
    X = np.random.default_rng(0).normal(size=(20, wide.width))
    Y = wide.projected(X)
    assert Y.shape == (20, private_kmeans.NARROW)
    assert (np.linalg.norm(Y, axis=1) <= 0.8).all()
    assert np.array_equal(wide.projected(X[3:4])[0], Y[3])
