"""How sanitised sources are answered: exact integers, whatever the order and size of batches."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada import Owner
from privada.exceptions import InputError
from privada.methods.clustering import LocalMeans, NearestMeans, NeighbourAverages, SourceRadius, owner
from privada.parties import Number, Rows, Schema
from privada.parties.answering import answer_rows, answerer
from privada.parties.compute import batch as batch_module
from privada.privacy import ZCDP, PureDP

RHO = ZCDP(rho=1, relation="add/remove")


PURE = PureDP(epsilon=3, relation="add/remove")


SCHEMA = Schema(columns=[Number(name=f"x{i}", low=-9, high=9) for i in range(3)])


PUBLIC = np.random.default_rng(5)


TARGETS = np.round(PUBLIC.normal(size=(80, 3)) * 0.2, 2)


def questions(guarantee=RHO, cells=TARGETS):
    yield NearestMeans(cells=cells, radius=0.5, guarantee=guarantee)
    for moments in ("none", "trace", "full", "pooled"):
        yield LocalMeans(
            cells=cells, shells=[0.1, 0.3, 0.8], domain=0.5, moments=moments, guarantee=guarantee
        )
    yield NeighbourAverages(targets=cells[:9], t=7, radius=0.5, guarantee=guarantee)
    yield SourceRadius(targets=cells[:9], t=7, radius=0.5, guarantee=guarantee)


def exact(question, data, schema=SCHEMA):
    """What is noised, as it is handed to the mechanisms."""
    seen = {}
    answerer(question)(question, Rows(data, schema=schema), lambda n, v: seen.setdefault(n, v.copy()))
    return seen


@pytest.mark.parametrize("question", list(questions()), ids=lambda q: q.kind)
def test_batches_of_any_size_give_the_same_integers(question, tmp_path, monkeypatch):
    X = np.round(np.random.default_rng(0).normal(size=(1000, 3)) * 0.3, 2)  # with ties and duplicates
    pq.write_table(pa.table({f"x{i}": X[:, i] for i in range(3)}), tmp_path / "x.parquet")
    found = []
    for size, data in ((1000, X), (7, X), (100, X[::-1]), (64, tmp_path / "x.parquet")):
        monkeypatch.setattr(batch_module, "BATCH", size)
        found.append(exact(question, data))
    for other in found[1:]:
        assert all(np.array_equal(other[name], found[0][name]) for name in other)
    assert all(value.dtype == np.int64 for value in found[0].values())


@pytest.mark.parametrize(
    "question", [*questions(), *questions(PURE)], ids=lambda q: f"{q.kind}-{q.guarantee}"
)
def test_no_source_is_a_source(question, rehearsal):
    """An empty one has the same shapes, and every number of it is noised (hazard 6)."""
    nothing, something = (
        answer_rows(question, Rows(rows, schema=SCHEMA), noise=rehearsal)
        for rows in (np.empty((0, 3)), np.zeros((5, 3)))
    )
    for name, value in nothing.items():
        assert value.shape == something[name].shape
        assert np.mean(value != 0) > 0.5


def test_each_row_is_in_exactly_one_cell_and_at_most_one_shell():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(500, 3)) * 0.3, TARGETS, TARGETS, [[8.0, 8.0, 8.0]]])
    near, local, *_ = questions()
    grid = near.plan.draws["counts"].grid
    assert grid.values(exact(near, X)["counts"]).sum() == len(X)
    distances = np.linalg.norm(X[:, None] - TARGETS[None], axis=2).min(axis=1)
    counts = local.plan.draws["counts"].grid.values(exact(local, X)["counts"])
    for shell, (low, high) in enumerate([(-1, 0.1), (0.1, 0.3), (0.3, 0.8)]):
        assert counts[:, shell].sum() == np.sum((distances > low) & (distances <= high))
    assert counts.sum() < len(X), "rows beyond the last shell contribute nothing"


def test_shells_hold_what_they_say():
    """Sums and moments in units of the shell's radius, against a plain computation."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3)) * 0.3
    *_, full = list(questions())[:4]
    seen = {name: full.plan.draws[name].grid.values(value) for name, value in exact(full, X).items()}
    cells = np.linalg.norm(X[:, None] - TARGETS[None], axis=2).argmin(axis=1)
    v = X - TARGETS[cells]
    shells = np.searchsorted(full.shells, np.linalg.norm(v, axis=1))
    rows, columns = np.triu_indices(3)
    for cell, shell in {(c, s) for c, s in zip(cells, shells, strict=True) if s < 3}:
        mine = v[(cells == cell) & (shells == shell)] / full.shells[shell]
        packed = (mine[:, rows] * mine[:, columns]).sum(axis=0) * np.where(rows == columns, 1, np.sqrt(2))
        assert np.allclose(seen["sums"][cell, shell], mine.sum(axis=0), atol=1e-3)
        assert np.allclose(seen["moments"][cell, shell], packed, atol=1e-3)


def test_pooled_moments_are_the_sum_over_cells():
    X = np.random.default_rng(2).normal(size=(400, 3)) * 0.3
    shared = {"cells": TARGETS, "shells": [0.1, 0.3, 0.8], "domain": 0.5, "guarantee": RHO}
    full, pooled = (LocalMeans(moments=moments, **shared) for moments in ("full", "pooled"))
    apart, together = (
        question.plan.draws["moments"].grid.values(exact(question, X)["moments"])
        for question in (full, pooled)
    )
    assert together.shape == (3, 6)
    assert np.allclose(apart.sum(axis=0), together, atol=1e-3)


def test_neighbours_are_the_nearest_and_absent_ones_are_the_centre():
    rng = np.random.default_rng(3)
    for size in (0, 1, 6, 7, 8, 200):
        X = rng.normal(size=(size, 3)) * 0.15
        averages, radius = list(questions())[-2:]
        clipped = X * np.minimum(1, 0.5 / np.maximum(np.linalg.norm(X, axis=1), 1e-9))[:, None]
        distances = np.linalg.norm(clipped[None] - averages.targets[:, None], axis=2)
        nearest = np.sort(distances, axis=1)[:, :7]
        sums = np.array([clipped[np.argsort(row)[:7]].sum(axis=0) for row in distances])
        found = averages.grid.values(exact(averages, X)["sums"])
        assert np.allclose(found, sums, atol=1e-4)
        absent = (7 - min(7, size)) * (np.linalg.norm(radius.targets, axis=1) + 0.5).sum()
        total = radius.grid.values(exact(radius, X)["total"])
        assert total == pytest.approx(nearest.sum() + absent, abs=1e-3)


@pytest.mark.parametrize("moments", ["none", "trace", "full", "pooled"])
def test_shifting_the_domain_changes_nothing_where_rows_are_seen_from_their_cell(moments):
    """The translated domain on which the printed mechanism is not private (privacy.md, section 1 (d))."""
    schema = Schema.of_numbers(bounds=(-200, 200), width=3)
    X = np.round(np.random.default_rng(6).normal(size=(300, 3)) * 16) / 64
    centers = np.round(TARGETS * 64) / 64
    for kind, more in (
        (LocalMeans, {"shells": [0.125, 0.5], "moments": moments, "domain": 200}),
        (NearestMeans, {"radius": 0.5, "recentred": True, "domain": 200}),
        (NearestMeans, {"radius": 0.5, "recentred": True, "domain": 200, "noise": "k-norm"}),
    ):
        here, there = (
            exact(kind(cells=centers + shift, guarantee=PURE, **more), X + shift, schema)
            for shift in (0, 96.0)
        )
        assert all(np.array_equal(here[name], there[name]) for name in here)


def test_an_outlier_changes_no_more_than_anyone():
    far = np.array([[1e6, -1e6, 1e6]])
    schema = Schema.of_numbers(bounds=(-1e7, 1e7), width=3)
    near, local, *_, averages, radius = questions()
    seen = exact(near, far, schema)
    assert np.linalg.norm(near.plan.draws["sums"].grid.values(seen["sums"])) <= 0.5
    assert np.count_nonzero(seen["counts"]) == 1
    assert not any(value.any() for value in exact(local, far, schema).values())
    sums = averages.grid.values(exact(averages, far, schema)["sums"])
    assert np.linalg.norm(sums, axis=1).max() <= 0.5
    empty = exact(radius, np.empty((0, 3)), schema)["total"]
    assert abs(exact(radius, far, schema)["total"] - empty) <= radius.farthest.sum()


@pytest.mark.parametrize("question", list(questions()), ids=lambda q: q.kind)
def test_nothing_is_charged_for_a_question_that_does_not_fit(question):
    owner = Owner(np.zeros((4, 2)), schema=Schema.of_numbers(bounds=(0, 1), width=2), dataset="s", budget=RHO)
    before = owner.ledger.remaining("s")
    with pytest.raises(InputError, match="features|width"):
        owner.answer(question)
    assert owner.ledger.remaining("s") == before


def test_k_norm_noise_needs_an_owner_who_allows_it():
    from privada.exceptions import PolicyError
    from privada.parties import Policy

    question = NearestMeans(cells=TARGETS, radius=0.5, noise="k-norm", guarantee=PURE)
    shared = {"schema": SCHEMA, "dataset": "s", "budget": PURE}
    with pytest.raises(PolicyError, match="idealised"):
        Owner(np.zeros((4, 3)), **shared).answer(question)
    release = Owner(np.zeros((4, 3)), policy=Policy(idealised=True), **shared).answer(question)
    assert "idealised arithmetic" in release.stamps


STEPS = (2.0**30, 2.0**30)


def test_ties_of_neighbours_are_broken_by_coordinates_not_by_place():
    ring = np.array([[np.cos(a), np.sin(a), 0.0] for a in np.arange(12) * np.pi / 6]).round(3) * 0.25
    ring = np.vstack([ring, ring, -ring])
    question = NeighbourAverages(targets=np.zeros((1, 3)), t=5, radius=0.5, guarantee=RHO)
    rng = np.random.default_rng(4)
    found = [exact(question, ring[rng.permutation(len(ring))])["sums"] for _ in range(20)]
    assert all(np.array_equal(other, found[0]) for other in found)


def local(X, cells, centers, shells, triangle):
    shape = len(centers) * len(shells)
    counts = np.zeros(shape, dtype=np.int64)
    sums = np.zeros((shape, X.shape[1]), dtype=np.int64)
    moments = np.zeros((shape, triangle), dtype=np.int64)
    owner.add_to_shells(counts, sums, moments, X, cells, centers, np.array(shells), STEPS)
    return counts, sums / STEPS[0], moments / STEPS[1]


@pytest.mark.parametrize("triangle", [0, 1, 3])
def test_rows_are_added_to_the_first_shell_that_holds_them_in_its_units(triangle):
    centers, shells = np.array([[0.0, 0.0], [5.0, 0.0]]), [0.5, 2.0]
    X = np.array([[0.3, 0.0], [0.0, 1.0], [5.0, -1.0], [0.0, 2.5], [1e300, -1e300]])
    counts, sums, moments = local(X, np.array([0, 0, 1, 0, 0]), centers, shells, triangle)
    assert counts.tolist() == [1, 1, 0, 1]  # (cell, shell); the two last rows are beyond
    np.testing.assert_allclose(sums, [[0.6, 0], [0, 0.5], [0, 0], [0, -0.5]], atol=1e-8)
    assert moments.shape == (4, triangle)
    if triangle == 1:
        np.testing.assert_allclose(moments[:, 0], [0.36, 0.25, 0, 0.25], atol=1e-8)
    if triangle == 3:
        np.testing.assert_allclose(moments[1], [0, 0, 0.25], atol=1e-8)


def test_a_triangle_has_the_norm_of_the_whole_matrix():
    v = np.array([[0.6, -0.5]])
    _, _, moments = local(v, np.zeros(1, dtype=np.int64), np.zeros((1, 2)), [1.0], 3)
    assert np.linalg.norm(moments) == pytest.approx(np.linalg.norm(v.T @ v), abs=1e-8)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("radius", [1e-90, 0.5, 1e90])
def test_no_row_leaves_the_ball_and_one_inside_is_not_touched(scale, radius):
    X = scale * np.random.default_rng(0).normal(size=(100, 3))
    clipped = owner.clip_rows(X, radius)
    lengths = np.linalg.norm(clipped / radius, axis=1)
    assert (lengths <= 1).all()
    inside = np.abs(X).max(axis=1) * 2 < radius
    assert np.array_equal(clipped[inside], X[inside])
    if not inside.any():
        np.testing.assert_allclose(lengths, 1, rtol=1e-9)


def heaps(targets, t):
    return np.full((len(targets), t), np.inf), np.zeros((len(targets), t, targets.shape[1]))


def test_the_nearest_are_kept_in_any_order_and_from_parts():
    rng = np.random.default_rng(1)
    X, targets = np.round(rng.normal(size=(300, 2)), 1), np.round(rng.normal(size=(7, 2)), 1)
    wanted = np.sort(np.square(X[None] - targets[:, None]).sum(axis=2), axis=1)[:, :9]
    whole, rows = heaps(targets, 9)
    owner.keep_nearest(whole, rows, X, targets)
    np.testing.assert_allclose(np.sort(whole, axis=1), wanted, atol=1e-12)
    first, kept = heaps(targets, 9)
    second, others = heaps(targets, 9)
    owner.keep_nearest(first, kept, X[200:], targets)
    owner.keep_nearest(second, others, X[:200], targets)
    owner.merge_nearest(first, kept, second, others)
    for j in range(len(targets)):
        mine, theirs = (sorted(map(tuple, side[j])) for side in (rows, kept))
        assert mine == theirs


def test_fewer_rows_than_neighbours_leave_the_rest_infinitely_far():
    distances, rows = heaps(np.zeros((1, 2)), 4)
    owner.keep_nearest(distances, rows, np.array([[3.0, 4.0]]), np.zeros((1, 2)))
    assert sorted(distances[0]) == [25.0, np.inf, np.inf, np.inf]
