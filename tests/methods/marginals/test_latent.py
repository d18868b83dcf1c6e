"""Coordinates in which a public source is simple, and points between its rows: public, before any asking."""

import sys

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from privada import MarginalLearner
from privada.exceptions import InputError
from privada.methods.marginals import LatentCoordinates, intrinsic_dimension, latent_coordinates
from privada.methods.marginals import latent as module
from privada.methods.marginals.public import EVENNESS, whitening, with_between

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(7)
HIDDEN = RNG.normal(size=(1200, 2))
FOLDS = RNG.normal(size=(2, 40)), RNG.normal(size=(40, 8))


def folded(hidden):
    """A curved surface in eight features, each of deviation about 1."""
    X = np.tanh(hidden @ FOLDS[0]) @ FOLDS[1]
    return (X - X.mean(axis=0)) / X.std(axis=0)


ROWS = folded(HIDDEN)
SETTINGS = {
    "classes": (0, 1),
    "bounds": (-4, 4),
    "epsilon": 1.0,
    "size": 500,
    "classifier": LogisticRegression(),
}
Y = (HIDDEN[:, 0] * HIDDEN[:, 1] > 0).astype(int)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(module, "STEPS", 20)


@pytest.fixture(scope="module")
def learnt():
    return latent_coordinates(ROWS, seed=1)


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_rows_say_how_many_dimensions_they_lie_along(dimension):
    hidden = np.random.default_rng(dimension).normal(size=(2000, dimension))
    surface = np.tanh(hidden @ np.random.default_rng(0).normal(size=(dimension, 12)))
    assert intrinsic_dimension(surface) == dimension


@pytest.mark.parametrize(
    ("rows", "dimension"),
    [(np.ones((50, 3)), 3), (np.repeat(HIDDEN[:200], 3, axis=0), 2), (np.ones((50, 80)), 50)],
    ids=["all alike", "thrice", "fewer than features"],
)
def test_rows_that_are_alike_have_a_dimension(rows, dimension):
    assert intrinsic_dimension(rows) == dimension


def test_fewer_rows_than_features_have_coordinates(short):
    wide = np.random.default_rng(0).normal(size=(100, 300))
    made = latent_coordinates(wide)
    assert made.dimension <= 100
    assert np.isfinite(made(wide)).all()


def test_the_code_unfolds_the_surface(learnt):
    assert learnt.dimension == 2
    code, beside = np.split(learnt(ROWS), [2], axis=1)
    assert code.var(axis=0).sum() == pytest.approx(1.0, rel=1e-4)
    assert beside.var(axis=0).sum() == pytest.approx(module.BESIDE**2, rel=1e-9)
    truth, kept = pdist(HIDDEN[:300]), slice(300)
    unfolded = spearmanr(truth, pdist(code[kept])).statistic
    before = spearmanr(truth, pdist(ROWS[kept] @ whitening(ROWS, EVENNESS))).statistic
    assert unfolded > 0.9
    assert 1 - unfolded < 0.7 * (1 - before)


def test_a_row_has_its_coordinates_whatever_is_beside_it(learnt):
    assert learnt(ROWS[:1]) == pytest.approx(learnt(ROWS)[:1], abs=1e-9)
    with pytest.raises(InputError, match="Expected coordinates of 3 features, got 8"):
        learnt(ROWS[:, :3])


def test_learning_leaves_torch_as_it_was(short):
    torch.manual_seed(5)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    first, again, other = (latent_coordinates(ROWS, seed=seed)(ROWS) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        (ROWS[:99], {}, "Expected at least 100 public rows for latent coordinates, got 99"),
        (ROWS, {"dimension": 9}, "Expected at most 8 latent dimensions, got 9"),
        (ROWS, {"dimension": 0}, "dimension"),
        (np.full((200, 2), np.nan), {}, "rows"),
    ],
    ids=["few", "many", "none", "holes"],
)
def test_what_cannot_be_learnt_is_refused(rows, settings, message):
    with pytest.raises(InputError, match=message):
        latent_coordinates(rows, **settings)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"Latent coordinates need torch: pip install 'privada\[deep\]'"):
        latent_coordinates(ROWS)


def fitted(**more):
    return MarginalLearner(**SETTINGS | more).fit(ROWS[:500], Y[:500], source=ROWS[500:])


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_coordinates_are_the_learners_own(short):
    plain, ours = (fitted(coordinates=which, cells=60, rehearsal=3) for which in ("whitened", "latent"))
    assert plain.coordinates_ is None
    assert isinstance(ours.coordinates_, LatentCoordinates)
    (before,), (after,) = plain.releases_, ours.releases_
    assert before.question == after.question  # nothing of them goes to the owner
    assert all(np.array_equal(before[name], after[name]) for name in before.payload)
    differ = plain.synthetic_target_.probabilities != ours.synthetic_target_.probabilities
    assert differ.any()
    again = fitted(coordinates=ours.coordinates_, cells=60, rehearsal=3)
    assert np.array_equal(again.synthetic_target_.probabilities, ours.synthetic_target_.probabilities)


def test_latent_coordinates_label_a_folded_surface():
    source, target, test = ROWS[:600], ROWS[600:900], ROWS[900:]
    settings = SETTINGS | {"epsilon": 2.0, "size": 300, "cells": 60, "coordinates": "latent"}
    learner = MarginalLearner(**settings).fit(target, Y[600:900], source=source)
    said = learner.fit_.synthetic.codes
    assert (said == Y[:600]).mean() > 0.85
    assert learner.score(test, Y[900:]) > 0.4  # a line cannot say more of this label


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"coordinates": "magic"}, "coordinates"),
        ({"coordinates": 3}, "coordinates"),
        ({"coordinates": "latent", "question": "marginals"}, 'only for question="cells", got "marginals"'),
        ({"between": 2, "rounds": 2, "question": "marginals"}, 'only for question="cells", got "marginals"'),
        ({"between": -1}, "between"),
        ({"between": 1.5}, "between"),
    ],
    ids=str,
)
def test_settings_are_refused_before_anything_is_learnt_or_asked(monkeypatch, wrong, message):
    for place in ("latent.latent_coordinates", "_one_process.Owner"):
        monkeypatch.delattr(f"privada.methods.marginals.{place}")
    with pytest.raises(InputError, match=message):
        fitted(**wrong)


def test_torch_is_missed_before_anything_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delattr("privada.methods.marginals._one_process.Owner")
    with pytest.raises(InputError, match="Latent coordinates need torch"):
        fitted(coordinates="latent")


def test_coordinates_that_cannot_be_learnt_cost_nothing(monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(module, "latent_coordinates", fails)
    monkeypatch.delattr("privada.methods.marginals._one_process.Owner")
    with pytest.raises(MemoryError):
        fitted(coordinates="latent")


def test_few_rows_for_latent_coordinates_are_refused_before_anything_is_asked(monkeypatch):
    monkeypatch.delattr("privada.methods.marginals._one_process.Owner")
    with pytest.raises(InputError, match="Expected at least 100 public rows for latent coordinates, got 99"):
        MarginalLearner(**SETTINGS, coordinates="latent").fit(ROWS[:500], Y[:500], source=ROWS[:99])


def test_coordinates_of_other_features_are_refused(learnt):
    with pytest.raises(InputError, match="Expected coordinates of 2 features, got 8"):
        MarginalLearner(**SETTINGS | {"coordinates": learnt}).fit(HIDDEN, Y, source=HIDDEN)


class Noting(LogisticRegression):
    """Remembers what it was given."""

    def fit(self, X, y, sample_weight=None):
        self.given_ = X, y, sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("size", [500, 100_000], ids=["few rows a cell", "many"])
def test_points_between_rows_are_labelled_and_trained_on(size):
    target = RNG.uniform(size=(size, 2))
    source = RNG.uniform(size=(400, 2))
    settings = SETTINGS | {"bounds": (0, 1), "size": size, "between": 3, "epsilon": 4.0}
    settings["classifier"] = Noting()
    learner = MarginalLearner(**settings).fit(target, (target[:, 0] > 0.5).astype(int), source=source)
    made, fit = learner.synthetic_target_, learner.fit_
    assert np.array_equal(made.X, source)  # others can look its rows up
    assert made.probabilities.shape == (400, 2)
    assert made.weights.mean() == pytest.approx(1.0)
    rows, codes, weights = fit.model.given_
    assert len(rows) == len(codes) == len(weights) == 1600
    rows = rows * fit.scale + fit.mean
    assert rows[:400] == pytest.approx(source, abs=1e-5)
    assert np.array_equal(codes[:400], made.codes)
    assert (codes == (rows[:, 0] > 0.5)).mean() > 0.9
    assert np.all((rows >= -1e-5) & (rows <= 1 + 1e-5))


def test_a_point_lies_between_a_row_and_a_near_one():
    line = np.linspace(0, 1, 101)[:, None]
    made = with_between(line, line, 4, seed=0)
    assert np.array_equal(made[:101], line)
    for start in range(101, 505, 101):
        moved = np.abs(made[start : start + 101] - line)
        assert 0 < moved.max() <= 0.1 + 1e-12  # ten neighbours, a hundredth apart
    assert with_between(line[:1], line[:1], 4, seed=0).shape == (1, 1)


def test_neighbours_of_many_rows_are_looked_for_among_some(monkeypatch):
    monkeypatch.setattr("privada.methods.marginals.public.FIT_ROWS", 50)
    line = np.linspace(0, 1, 1001)[:, None]
    made = with_between(line, line, 1, seed=0)
    assert made.shape == (2002, 1)
    assert 0 < np.abs(made[1001:] - line).max() < 0.5


def test_a_large_source_is_learnt_from_some_of_its_rows(short, monkeypatch):
    monkeypatch.setattr("privada.methods.marginals.public.FIT_ROWS", 200)
    monkeypatch.setattr(module, "intrinsic_dimension", lambda rows: len(rows) // 100)
    assert latent_coordinates(ROWS).dimension == 2


@pytest.mark.parametrize("wrong", [{"between": 1.5}, {"between": -1}, {"coordinates": 0}], ids=str)
def test_a_learner_refuses_before_it_asks(learnt, wrong):
    from privada.methods.marginals import Public, default_cells, learn_cells
    from privada.privacy import Pure

    wrong = {"coordinates": learnt} if "coordinates" in wrong else wrong
    source, pure = HIDDEN[:200], Pure(epsilon=1, relation="add/remove")
    question, _ = default_cells(source, guarantee=pure, size=200, n_classes=2, seed=0)
    with pytest.raises(InputError):
        next(learn_cells("owner", question, Public(source=source, classes=(0, 1), **wrong)))
