"""Centres on a private tree: cubes, leaves, and sums within their price."""

import math

import numpy as np
import pytest

from privada.audit import Sample, replay
from privada.audit.transcript import coupled
from privada.exceptions import InputError
from privada.parties.answering import answer_rows
from privada.parties.rows import Rows
from privada.parties.schema import Schema
from privada.privacy import ZCDP, Laplace, PureDP, Relation
from privada_lab.baselines.private import _cubes
from privada_lab.baselines.private.tree_kmeans import TreeCenters, clipped_rows, clustered

PURE = PureDP(epsilon=4.0, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=2, size=40)


def question(guarantee=PURE, **more):
    public = {"n_clusters": 4, "width": 2, "norm_bound": 0.8, "depth": 3}
    return TreeCenters(**(public | {"guarantee": guarantee} | more))


def sample():
    """Two piles and some scattered rows, duplicates among them."""
    rng = np.random.default_rng(0)
    piles = np.repeat([[0.3, 0.3], [-0.5, 0.2]], 15, axis=0)
    return Sample.of(np.vstack([piles, rng.uniform(-1, 1, size=(10, 2))]), schema=SCHEMA)


def test_cubes_hold_every_row_once_and_children_lie_in_parents(rehearsal):
    from privada.parties.answering import Draws
    from privada.privacy.mechanism import Plan

    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(2000, 2))
    draws = {f"level {i}": Laplace(sensitivity=1, scale=0.05) for i in (1, 2, 3)}
    plan = Plan(draws=draws)
    levels = _cubes.descend(X, Draws(plan, rehearsal), draws, corner=np.full(2, -1.0), side=2.0)
    for level, side in zip(levels, (1.0, 0.5, 0.25), strict=True):
        inside = level.members >= 0
        gaps = np.abs(X[inside] - level.centers[level.members[inside]])
        assert gaps.max() <= side / 2 + 1e-12
        assert (
            np.abs(level.counts - np.bincount(level.members[inside], minlength=len(level.counts))).max() < 1
        )
        assert level.radius == pytest.approx(side / math.sqrt(2))
    assert (np.abs(levels[1].centers - levels[0].centers[levels[1].parents]) == 0.25).all()


def test_empty_cubes_rarely_pass():
    """20 % expected strays at most per level, from a level of 4096 empty cubes; false alarm 1e-6."""

    mechanism = Laplace(sensitivity=1, scale=5.0)
    noise = coupled(0)
    strays = [
        len(_cubes.passing(mechanism.draw(np.zeros(4096, dtype=np.int64), noise), mechanism, most=4096))
        for _ in range(200)
    ]
    assert np.mean(strays) < 0.2 + 5 * math.sqrt(0.2 / 200)


@pytest.mark.parametrize(("norm_bound", "depth"), [(1e-100, 4), (1.0, 200), (1e100, 4)])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE])
def test_a_tree_at_the_ends_of_floats_moves_no_sum_past_its_price(norm_bound, depth, relation):
    """Rows seen from a leaf of no size are no numbers: they could not be put on the grid, others could."""
    for bad in (1e-300, 1e300):
        with pytest.raises(InputError, match="Expected norm_bound between"):
            TreeCenters(n_clusters=2, width=2, norm_bound=bad, guarantee=PURE)
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    X[:200] = 0.0
    other = X[:-1] if relation is Relation.ADD_REMOVE else np.vstack([X[:-1], [[0.0, 0.0]]])
    schema = Schema.of_numbers(bounds=(-1, 1), width=2, size=300)
    asked = TreeCenters(
        n_clusters=2,
        width=2,
        norm_bound=norm_bound,
        depth=depth,
        guarantee=ZCDP(rho=500.0, relation=relation),
    )
    found = replay(asked, *(Rows(part, schema=schema) for part in (X, other)))
    assert found.passed, found


def test_missing_centres_weigh_nothing_and_lie_at_the_origin():
    points, weights = np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([3.0, 4.0])
    found = clustered(points, weights, question())
    assert found["weights"].tolist() == [3.0, 4.0, 0.0, 0.0]
    assert not found["centers"][2:].any()


def test_centres_keep_the_weight_of_their_leaves():
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(-0.5, 0.5, size=(60, 2)), rng.uniform(1, 9, size=60)
    found = clustered(points, weights, question())
    assert found["weights"].sum() == pytest.approx(weights.sum())
    mean = (found["centers"] * found["weights"][:, None]).sum(axis=0) / weights.sum()
    np.testing.assert_allclose(mean, np.average(points, axis=0, weights=weights))


def test_rows_are_clipped_to_the_ball():
    far = Rows(np.array([[1e6, 0.0], [0.1, 0.1]]), schema=Schema.of_numbers(bounds=(-1e7, 1e7), width=2))
    clipped = clipped_rows(far, 0.8)
    assert np.linalg.norm(clipped, axis=1).max() <= 0.8
    assert clipped[1].tolist() == [0.1, 0.1]


def test_with_hardly_any_noise_the_piles_are_found(rehearsal):
    asked = question(PureDP(epsilon=1e4, relation="add/remove"), depth=5)
    found = answer_rows(asked, sample().rows(), noise=rehearsal)
    for pile in ([0.3, 0.3], [-0.5, 0.2]):
        assert np.linalg.norm(found["centers"] - pile, axis=1).min() < 0.15


@pytest.mark.parametrize(
    ("change", "name"),
    [({"width": 11}, "width"), ({"norm_bound": 1e101}, "norm_bound"), ({"sum_share": 1.0}, "sum_share")],
)
def test_parameters_are_refused_by_name(change, name):
    with pytest.raises(InputError, match=name):
        question(**change)
