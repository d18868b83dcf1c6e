"""A summary at the curator's: training, files, values, and what reports say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from privada import CellClassifier, run
from privada.exceptions import InputError
from privada.methods.summarization import (
    Allocation,
    FourierEmbedding,
    Reference,
    allocate,
    estimate_shares,
    herd,
    marginal_gains,
    summarise,
)
from privada.methods.summarization.learner.summary import PointCollection


def drive(consumer, owners, matching):
    nodes = {node.name: node.owner for node in (consumer, *owners)}
    sizes = {node.name: node.size for node in owners}
    return run(summarise(consumer.name, consumer.size, sizes, matching), nodes)


def test_a_summary_trains_saves_and_tells_values(town, matching, tmp_path):
    summary = drive(*town(), matching)
    model = summary.train(LogisticRegression())
    assert model.score(summary.X, summary.y) > 0.8
    centers = [[1.5, 0.5], [0.5, 1.5], [-0.5, -1.5], [-1.5, -0.5]]
    private = CellClassifier(centers=centers, classes=(0, 1), bounds=(-4, 4), epsilon=50)
    assert summary.train(private).score(summary.X, summary.y) > 0.6
    file = summary.save(tmp_path / "summary.npz")
    with np.load(file) as held:
        assert np.array_equal(held["X"], summary.X)
    with pytest.raises(InputError, match="there already"):
        summary.save(file)
    values = summary.contributions()
    assert values["near"] > values["far"]
    plain = summary.to_dict()
    assert "raw rows at the curator: not differentially private" in plain["stamps"]
    assert plain["points"] == 40
    assert plain["against"] == "any coalition of owners"


def test_a_less_trusted_curator_gets_embeddings_only(town, matching):
    from dataclasses import replace

    summary = drive(*town(), replace(matching, embedded=True))
    assert summary.X.shape == (40, matching.embedding.dimension)
    assert "embeddings at the curator: not differentially private" in summary.to_dict()["stamps"]
    assert summary.train(LogisticRegression()).score(summary.X, summary.y) > 0.7
    assert sum(summary.contributions().values()) > 0


SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=12)


@given(SIZES, st.integers(0, 2**31), st.floats(0, 1))
def test_it_sums_up_and_nobody_gives_more_than_it_has(sizes, seed, part):
    rng = np.random.default_rng(seed)
    total = max(1, int(part * sum(sizes)))
    given_ = allocate(sizes, rng.uniform(0, 1, len(sizes)) * rng.integers(0, 2), total=total)
    assert given_.sum() == total
    assert np.all((given_ >= 0) & (given_ <= sizes))


def test_obvious_answers():
    assert allocate([7], [0.2], total=7).tolist() == [7]
    assert allocate([50, 50, 50], [0.4, 0.4, 0.4], total=30).tolist() == [10, 10, 10]
    assert allocate([100, 100], [0.0, 0.0], total=20).tolist() == [10, 10]
    assert allocate([100, 100], [0.9, 0.0], total=50).tolist() == [50, 0]
    few = allocate([100, 100], [0.1, 0.01], total=60)
    assert few[0] >= few[1]
    with pytest.raises(InputError, match="at most 9 rows"):
        allocate([4, 5], [1, 1], total=10)


def test_shares_are_drawn_together_as_noise_demands():
    rng = np.random.default_rng(0)
    n = np.array([1400, *[7] * 255])
    true = np.array([0.8, *[0.3] * 255])
    noisy = n * true + 13 * rng.normal(size=256)
    found = estimate_shares(n, noisy, variance=13.0**2)
    assert found[0] == pytest.approx(0.8, abs=0.05)
    assert np.std(found[1:]) < 0.1
    clear = estimate_shares([100, 100, 100], [10, 50, 90], variance=1.0)
    assert clear == pytest.approx([0.1, 0.5, 0.9], abs=0.02)
    assert np.ptp(estimate_shares([100, 100], [50, 50], variance=100.0)) == 0


def test_the_hyperplane_is_half_way_and_freed_of_noise():
    a, b = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    plane = Reference.between(a, b, noise=(0.0, 0.0))
    assert plane.threshold == 0
    assert plane.direction @ b < plane.threshold < plane.direction @ a
    rng = np.random.default_rng(1)
    noisy = [
        Reference.between(a + 0.3 * rng.normal(size=3), b, noise=(0.09, 0.0)).threshold for _ in range(4000)
    ]
    assert np.mean(noisy) == pytest.approx(0, abs=0.04)


@pytest.fixture
def points(matching):
    return PointCollection(embedding=matching.embedding, embedded=False)


def to_summary(points):
    return points.to_summary(
        Allocation(rows={"a": 3}, sizes={"a": 9}, suitable={}, target=np.zeros(40), variance=0.0, releases=())
    )


def test_sound_points_and_labels_are_kept(points):
    points.add("a", {"X": np.array([[1.0, 2.0], [3.0, 4.0]]), "y": np.array([0, 1])}, most=2)
    points.add("b", {"X": np.array([[1.0, 2.0]]), "y": np.array([1])}, most=1)
    summary = to_summary(points)
    assert summary.owner.tolist() == ["a", "a", "b"], "another owner may hold an equal point"
    assert summary.y.tolist() == [0, 1, 1]
    assert summary.faults == ()


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({"X": [[7.31, np.nan], [1.0, 1.0]]}, "a: a point that is not finite (1)"),
        ({"X": [[7.31, 2.0], [7.31, 2.0], [1.0, 1.0]]}, "a: a point twice (1)"),
        ({"X": [[0.0, 1.0], [-0.0, 1.0], [2.0, 2.0]]}, "a: a point twice (1)"),
        ({"X": [[1.0, 1.0], [2.0, 2.0], [7.31, 3.0], [4.0, 4.0]]}, "a: more points than asked for"),
        ({"X": [[1.0, 1.0, 7.31]]}, "a: what it sent is no matrix of the right width"),
        ({"H": [[1.0, 1.0]]}, "a: what it sent is no matrix of the right width"),
        ({"X": [["7.31", "x"]]}, "a: what it sent is no matrix of the right width"),
        ({"X": [[1.0, 1.0]], "y": [0, 1]}, "a: what it sent is no matrix of the right width"),
    ],
)
def test_what_is_wrong_is_noted_without_a_row(points, rows, fault):
    points.add("a", {name: np.array(value) for name, value in rows.items()}, most=3)
    points.add("b", {"X": np.array([[5.0, 5.0]])}, most=1)
    summary = to_summary(points)
    assert summary.faults == (fault,)
    assert "7.31" not in str(summary.faults)
    assert np.isfinite(summary.X).all()


def test_nothing_that_can_be_used_is_an_error(points):
    points.note("a", "late")
    with pytest.raises(InputError, match="No owner sent a point"):
        to_summary(points)


RNG = np.random.default_rng(3)


E = FourierEmbedding.of(width=3, n_features=30, gamma=0.4, random_state=2)


X = RNG.normal(size=(120, 3))


H = E.transform(X)


def slow(H, target, size):
    """Try every row in every step."""
    chosen, total = [], np.zeros(H.shape[1])
    for step in range(size):
        count = step + 1
        gaps = [
            np.inf if i in chosen else np.sum((target - (total + h) / count) ** 2) for i, h in enumerate(H)
        ]
        chosen.append(int(np.argmin(gaps)))
        total = total + H[chosen[-1]]
    return chosen


def test_it_is_the_greedy_choice():
    target = E.mean(X[:30])
    assert herd(H, target, 25).tolist() == slow(H, target, 25)


def test_single_precision_matches_as_well():
    target = E.mean(X[:30])
    exact, quick = (herd(part, target, 40) for part in (H, H.astype(np.float32)))
    gaps = [np.sum((target - H[chosen].mean(axis=0)) ** 2) for chosen in (exact, quick)]
    assert gaps[1] == pytest.approx(gaps[0], rel=0.2)
    assert len(set(quick.tolist())) == 40


def test_all_rows_none_and_too_many():
    assert sorted(herd(H, H[0], len(H)).tolist()) == list(range(len(H)))
    assert herd(H, H[0], 0).size == 0
    with pytest.raises(InputError, match="at most the 120 rows"):
        herd(H, H[0], 121)


def test_gains_sum_to_the_objective():
    target = E.mean(X[:30])
    order, gains = marginal_gains(H[:40], target)
    mean = H[:40].mean(axis=0)
    assert sorted(order.tolist()) == list(range(40))
    assert gains.sum() == pytest.approx(2 * target @ mean - mean @ mean)


def test_one_row_can_change_several_choices():
    """So a model that is private for one point of a summary is not, at that price, private for one row."""
    target = E.mean(X[:30] + 0.3)
    most = 0
    for index in range(40):
        other = X.copy()
        other[index] = X[index] + 1.0
        changed = set(herd(E.transform(other), target, 20).tolist()) - set(herd(H, target, 20).tolist())
        most = max(most, len(changed))
    assert most > 2
