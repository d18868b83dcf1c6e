"""How much of a correction is believed, and what a portrait says of the target."""

import numpy as np
import pytest

from privada.methods.reweighting import Portrait
from privada.methods.reweighting.learner import rehearsal
from privada.methods.reweighting.learner.default import plan
from privada.methods.reweighting.learner.geometry import Spectrum
from privada.methods.reweighting.learner.portrait import Cells
from privada.methods.reweighting.learner.shrinkage import Filter, Shrinkage, blocks, shrunk
from privada.methods.reweighting.learner.stage import Noise, Settings, Stage
from privada.parties import Number, Owner, Schema, run
from privada.privacy import Approximate, Pure


@pytest.mark.parametrize(("alpha", "step"), [(0.03, 0.1), (0.3, 0.2), (1.0, 0.1)])
def test_the_filter_is_what_a_descent_does_to_its_errors(alpha, step):
    """Against 4,000 simulated descents on a quadratic: variance of the average, and answer to a constant."""
    curvatures, rng, steps = np.array([1.0, 0.3, 0.01]), np.random.default_rng(0), 40
    V, total = np.zeros((4000, 3)), np.zeros((4000, 3))
    for t in range(steps):
        gradient = curvatures * V + rng.normal(size=V.shape) - 1.0
        V = V - step * ((1 - alpha) * gradient + alpha * V)
        total += V * (t >= steps // 2)
    mean = total / (steps - steps // 2)
    made = Filter.of(curvatures, alpha=alpha, step=step, steps=steps)
    assert mean.var(axis=0) == pytest.approx(made.noise, rel=0.1, abs=1e-12)
    assert mean.mean(axis=0) == pytest.approx(made.constant, abs=4 * np.sqrt(made.noise.max() / 4000) + 1e-12)


def test_blocks_cover_every_direction_once():
    for k in (1, 4, 5, 134):
        assert [at for block in blocks(k) for at in range(k)[block]] == list(range(k))


def test_noise_alone_is_hardly_believed_and_a_strong_signal_nearly_wholly():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(60, 500, 1))
    variance = np.ones((60, 500))
    assert (shrunk(noise, variance) ** 2).mean() < 0.15
    signal = noise + 10
    assert ((shrunk(signal, variance) - 10) ** 2).mean() < 1.02
    assert not shrunk(np.zeros((5, 1)), np.ones(5)).any()


def test_more_rows_and_less_noise_leave_less_to_shrink():
    known = Shrinkage(np.array([1.0, 0.5]), pull=0.3)
    made = Filter.of(known.curvatures, alpha=0.1, step=0.1, steps=50)
    many = known.variance(made, noise=0.1, rows=1000)
    assert np.all(many < known.variance(made, noise=0.1, rows=100))
    assert np.all(many < known.variance(made, noise=0.2, rows=1000))


def wide(rows, rng):
    return rng.normal(size=(rows, 24)) * np.linspace(2, 0.2, 24)


def test_a_portrait_weighs_the_public_rows_that_are_like_the_target():
    rng = np.random.default_rng(0)
    left, right = wide(400, rng), wide(400, rng)
    left[:, 0] -= 8
    right[:, 0] += 8
    rows = np.column_stack([np.vstack([left, right]), np.ones(800)])
    cells = Cells.of(rows, Spectrum.of(rows), 0)
    shares, mean = cells.seen(rows[400:])
    like = cells.portrait(shares, mean, (1e-9, 1e-9))
    assert like.weights[:400].sum() < 0.5 * like.weights[400:].sum()
    assert like.mean[0] > 0.8
    bent = like.bend(rows, 0.5)
    assert abs(rows[:, 0] @ rows[:, -1]) < 0.2 * (bent[:, 0] @ bent[:, -1])


def test_counts_below_their_noise_weigh_nothing_and_none_at_all_weigh_alike():
    rng = np.random.default_rng(0)
    rows = np.column_stack([wide(400, rng), np.ones(400)])
    cells = Cells.of(rows, Spectrum.of(rows), 0)
    shares, mean = cells.seen(rows)
    assert cells.portrait(shares, mean, (2.0, 1.0)).weights == pytest.approx(np.ones(400))
    assert not cells.portrait(shares, 0 * mean, (0.0, 1.0)).mean.any()


def test_few_rows_or_few_directions_have_no_cells():
    rng = np.random.default_rng(0)
    few, narrow = wide(100, rng), rng.normal(size=(900, 5))
    assert Cells.of(few, Spectrum.of(few), 0) is None
    assert Cells.of(narrow, Spectrum.of(narrow), 0) is None


def test_a_portrait_is_asked_for_and_charged_before_the_descent():
    rng = np.random.default_rng(0)
    Xs, Xt = wide(600, rng), wide(300, rng)
    guarantee = Approximate(epsilon=2, delta=1e-6, relation="replace-one")
    made = plan(Xs, Xs[:, 0], loss="squared", size=300, guarantee=guarantee, random_state=0)
    settings = Settings(relative=1e-4, threshold=0.5, alpha=0.3, step_size=0.1, likeness=0.5)
    made = type(made)(**{**made.__dict__, "rehearsed": _only(settings)})
    schema = Schema.of_numbers(bounds=(-20, 20), width=24, size=300, label=Number(name="y", low=-20, high=20))
    owner = Owner(Xt, y=Xt[:, 1], schema=schema, dataset="t", budget=guarantee, accounting="gaussian")
    model = run(made.learner("t"), {"t": owner})
    assert [release.kind for release in model.releases] == ["reweighting.portrait", "reweighting.descent"]
    assert model.guarantee == guarantee


def _only(settings):
    from privada.methods.reweighting.learner.rehearsal import Rehearsed

    return Rehearsed((settings,), np.array([[-1.0]]), np.array([100.0]), np.array([1.0]))


def test_a_portrait_needs_two_centres_and_gaussian_noise():
    from privada.exceptions import InputError

    public = {"size": 5, "transform": np.eye(2), "shift": np.zeros(2), "radius": 1.0}
    guarantee = Approximate(epsilon=1, delta=1e-5, relation="replace-one")
    with pytest.raises(InputError, match="two cells"):
        Portrait(**public, centers=np.zeros((1, 2)), guarantee=guarantee)
    with pytest.raises(InputError, match="portrait"):
        Portrait(**public, centers=np.eye(2), guarantee=Pure(epsilon=1, relation="replace-one"))


@pytest.mark.parametrize(("size", "rows"), [(60, 60), (400, 200)])
def test_parts_play_the_target_with_as_many_rows_as_it_has(size, rows, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y, parts = X @ [1.0, 2.0, 3.0], np.repeat([0, 1], 300)
    seen = []
    monkeypatch.setattr(Stage, "scores", lambda self, settings, *rest: _score(self, settings, seen))
    how = {"penalty": 0.1, "noise": Noise(0.1, 0.1, (0.1, 0.1)), "n_outputs": 1, "standardize": True}
    rehearsal.rehearse("squared", X, y, parts, size=size, **how)
    assert set(seen) == {rows}  # two thirds of a part at most


@pytest.mark.parametrize(("size", "plays"), [(20, 6), (100, 4), (300, 2)])
def test_small_targets_are_played_more_often_and_known_domains_with_little_drift(size, plays, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y, parts, seen, drifts = X @ [1.0, 2.0, 3.0], np.repeat([0, 1], 300), [], []
    monkeypatch.setattr(Stage, "scores", lambda self, settings, *rest: _score(self, settings, seen))
    monkeypatch.setattr(Stage, "drifted", lambda self, by, rng: drifts.append(by) or self)
    monkeypatch.setattr(rehearsal, "WORK", 1600)  # with three features and a constant: 400 rows
    how = {"penalty": 0.1, "noise": Noise(0.1, 0.1, (0.1, 0.1)), "n_outputs": 1, "standardize": True}
    rehearsal.rehearse("squared", X, y, parts, size=size, **how)
    assert len(seen) == 2 * 2 * plays
    assert drifts == 2 * ([0.0] * plays + [0.15] * plays)
    drifts.clear()
    rehearsal.rehearse("squared", X, y, parts, size=size, drift=True, **how)
    assert drifts == 2 * [0.3, 0.3, 1.0, 1.0, 3.0, 3.0]  # clusters


def _score(stage, settings, seen):
    seen.append(len(stage.target))
    return np.zeros((2, len(settings)))
