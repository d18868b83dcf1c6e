"""The questions behind the private k-means baselines: replays, brute force, audits, calibration."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privada.audit import Sample, across_batches, audit_mechanism, neighbours, replay
from privada.exceptions import InputError
from privada.parties.answering import answer_rows
from privada.parties.schema import Schema
from privada.privacy import ZCDP, ApproxDP, PureDP, Relation, Unit
from privada.privacy.accounting import accountant, curves
from privada_lab.baselines.private.private_kmeans import SwappedCenters
from privada_lab.baselines.private.tree_kmeans import TreeCenters

KINDS = (TreeCenters, SwappedCenters)
GUARANTEES = [
    kind(**numbers, relation=relation)
    for relation in (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
    for kind, numbers in (
        (PureDP, {"epsilon": 4.0}),
        (ZCDP, {"rho": 1.0}),
        (ApproxDP, {"epsilon": 4.0, "delta": 1e-3}),
    )
]
CASES = [  # the swaps' approximate plan is its zCDP one, and its certified distribution takes half a minute
    (kind, guarantee)
    for kind in KINDS
    for guarantee in GUARANTEES
    if kind is TreeCenters or not isinstance(guarantee, ApproxDP)
]
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=2, size=40)


def question(kind, guarantee, **more):
    more = {"n_swaps": 3} | more if kind is SwappedCenters else more
    return kind(
        **({"n_clusters": 4, "width": 2, "norm_bound": 0.8, "depth": 3, "guarantee": guarantee} | more)
    )


def sample():
    """Two piles and some scattered rows, duplicates among them."""
    rng = np.random.default_rng(0)
    piles = np.repeat([[0.3, 0.3], [-0.5, 0.2]], 15, axis=0)
    return Sample.of(np.vstack([piles, rng.uniform(-1, 1, size=(10, 2))]), schema=SCHEMA)


def replays(asked, extra=()):
    marks = np.array([[0.0, 0.0], [0.4, -0.4], [1e6, 0.0], [0.8, 0.0], [-0.8, 0.0]])
    rng = np.random.default_rng(0)
    pairs = neighbours(sample(), relation=asked.guarantee.relation, rng=rng, landmarks=marks)
    for pair in [*pairs, *extra]:
        rows, neighbour = pair.sample.rows(), pair.neighbour.rows()
        yield replay(asked, rows, neighbour, pair=pair.name), rows, neighbour


@pytest.mark.parametrize(("kind", "guarantee"), CASES, ids=str)
def test_every_replay_passes(kind, guarantee):
    results = [result for result, _, _ in replays(question(kind, guarantee))]
    assert all(result.passed for result in results), [str(r) for r in results if not r.passed]
    assert max(check.share for result in results for check in result.draws) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_moves_the_same_across_batches(kind):
    asked = question(kind, GUARANTEES[0], depth=2)
    pair = across_batches(sample(), relation="add/remove")
    assert replay(asked, pair.sample.rows(), pair.neighbour.rows()).passed


@pytest.mark.parametrize("kind", KINDS)
def test_add_remove_noise_is_caught_on_replaced_rows(kind):
    asked = question(kind, GUARANTEES[0])
    pairs = neighbours(sample(), relation="replace-one", rng=np.random.default_rng(0))
    assert not all(replay(asked, pair.sample.rows(), pair.neighbour.rows()).passed for pair in pairs)


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "guarantee"), CASES, ids=str)
def test_black_box_bounds_stay_within_the_claim(kind, guarantee, rehearsal):
    """On the pair that comes nearest to the proof's bound; false alarm 1e-2 each."""
    asked = question(kind, guarantee, n_clusters=2, depth=2)
    _, rows, neighbour = max(replays(asked), key=lambda found: found[0].share)
    result = audit_mechanism(
        lambda side: answer_rows(asked, side, noise=rehearsal), rows, neighbour, claimed=guarantee, trials=300
    )
    assert result.passed, str(result)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_price_keeps_the_guarantee_and_wastes_little(kind, guarantee):
    asked = question(kind, guarantee, n_clusters=100)
    if isinstance(guarantee, PureDP):
        assert asked.price.epsilon == pytest.approx(guarantee.epsilon, rel=1e-6)
        return
    spent = ZCDP(rho=accountant.zcdp(asked.price.event), relation=guarantee.relation)
    if kind is SwappedCenters:
        assert spent <= guarantee
    else:
        assert accountant.satisfies(asked.price.event, guarantee)
    most = guarantee.rho if isinstance(guarantee, ZCDP) else curves.zcdp_rho(epsilon=4.0, delta=1e-3)
    assert spent.rho >= 0.999 * most


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_counts_for_all_rows_of_theirs(kind):
    row = question(kind, GUARANTEES[0])
    person = replace(row, guarantee=replace(row.guarantee, unit=Unit(name="person", max_rows=3)))
    for name, draw in row.plan.draws.items():
        assert person.plan.draws[name].sensitivity == pytest.approx(3 * draw.sensitivity)


def test_many_features_are_projected_publicly_or_refused():
    guarantee = PureDP(epsilon=5, relation="add/remove")
    wide = SwappedCenters(n_clusters=3, width=30, norm_bound=1.0, depth=2, n_swaps=2, guarantee=guarantee)
    rows = np.random.default_rng(0).normal(size=(50, 30)) / 6
    alone = np.vstack([wide.projected(rows[i : i + 1]) for i in range(50)])
    assert np.array_equal(wide.projected(rows), alone)
    assert wide.projected(rows).shape == (50, 8)
    schema = Schema.of_numbers(bounds=(-1, 1), width=30)
    pair = Sample.of(rows, schema=schema)
    assert replay(wide, pair.rows(), pair.without([0]).rows()).passed
    with pytest.raises(InputError, match="project first"):
        TreeCenters(n_clusters=3, width=30, norm_bound=1.0, guarantee=guarantee)


@pytest.mark.parametrize(
    "change", [{"depth": 0}, {"n_clusters": 0}, {"norm_bound": math.inf}, {"n_swaps": 0}]
)
def test_bad_parameters_are_named(change):
    with pytest.raises(InputError, match=next(iter(change))):
        question(SwappedCenters, GUARANTEES[0], **change)
