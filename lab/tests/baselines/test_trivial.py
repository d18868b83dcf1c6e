"""Trivial rivals: they keep their guarantee, pass replays, and without noise are what they say."""

import numpy as np
import pytest
from sklearn.base import clone

from privada.audit import Sample, neighbours, replay
from privada.audit.transcript import coupled
from privada.exceptions import InputError
from privada.parties import Number, Rows, Schema
from privada.privacy import ApproxDP, PureDP, Unit
from privada.privacy.accounting import accountant, curves
from privada_lab.baselines import (
    NoisyMajority,
    NoisyMean,
    OneSumRegressor,
    PriorCorrectedClassifier,
    PublicLogistic,
    PublicRidge,
    ResidualMean,
    ResidualSum,
    ShiftedRidge,
)
from privada_lab.baselines.private.trivial import residual_bound, shrinkage
from privada_lab.baselines.public import whiten

BUDGET = {"epsilon": 2.0, "delta": 1e-6}
CLAIM = ApproxDP(**BUDGET, relation="replace-one")
PERSON = ApproxDP(**BUDGET, relation="replace-one", unit=Unit(name="person", max_rows=3))
HUGE = {"rho": 8000}  # about the largest that a ledger counts
PUBLIC = {"bounds": (-4, 4), "label_bounds": (-10, 10)}


def regression(n=500, shift=0.7, slopes=(1.0, -0.5, 0.4), seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 3)), -4, 4)
    return X, X @ slopes + shift + 0.3 * rng.normal(size=n)


SOURCE, TARGET = regression(shift=0.0, slopes=(1.0, 0.5, 0.0)), regression(seed=1)


def classes(n=600, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n) < share, "yes", "no")
    return np.clip(rng.normal(size=(n, 2)) + np.where(y == "yes", 0.6, -0.6)[:, None], -4, 4), y


def asked(kind, guarantee=CLAIM, size=30, **more):
    centre, whitening = whiten(SOURCE[0])
    extra = {"centre": centre, "whitening": whitening} if kind is ResidualSum else {}
    model = {"coef": np.array([1.0, 0.5, 0.0]), "intercept": 0.1, "clip": 0.9, "size": size}
    return kind(**(model | extra | more), guarantee=guarantee)


@pytest.mark.parametrize("kind", [ResidualMean, ResidualSum])
def test_every_replay_passes_and_nothing_is_wasted(kind):
    question = asked(kind)
    schema = Schema.of_numbers(bounds=(-4, 4), width=3, size=30, label=Number(name="y", low=-10, high=10))
    sample, shares = Sample.of(TARGET[0][:30], y=TARGET[1][:30], schema=schema), []
    for pair in neighbours(sample, relation="replace-one", rng=np.random.default_rng(0)):
        sides = [side.rows(coupled(0)) for side in (pair.sample, pair.neighbour)]
        result = replay(question, *sides, pair=pair.name)
        assert result.passed, str(result)
        shares.append(result.share)
    assert max(shares) > 0.3
    mu = accountant.gaussian_mu(question.price.event)
    assert 0.99 * CLAIM.delta <= curves.gaussian_delta(CLAIM.epsilon, mu) <= CLAIM.delta


def test_the_declared_sensitivities_are_what_the_worst_pair_moves():
    """The row farthest out along a whitened direction, with a residual of one sign and then the other."""
    question = asked(ResidualSum, coef=np.zeros(3), intercept=0.0)
    schema = Schema.of_numbers(bounds=(-4, 4), width=3, size=30, label=Number(name="y", low=-10, high=10))
    X, y = np.tile([4.0, 4.0, 4.0], (30, 1)), np.zeros(30)
    sides = [Rows(X, y=np.r_[end, y[1:]], schema=schema) for end in (-10.0, 10.0)]
    result = replay(question, *sides)
    assert result.passed, str(result)
    assert result.share == pytest.approx(1, abs=0.01)
    doubled = asked(ResidualSum, guarantee=PERSON)
    for name, draw in question.plan.draws.items():
        assert doubled.plan.draws[name].sensitivity == pytest.approx(3 * draw.sensitivity)


@pytest.mark.parametrize("clip", [1e-300, 1.0, 1e300])
def test_numbers_at_the_ends_of_floats_move_no_sum_past_its_price(clip):
    schema = Schema.of_numbers(
        bounds=(-1e300, 1e300), width=3, size=12, label=Number(name="y", low=-1, high=1)
    )
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(12, 3)), rng.uniform(-1, 1, size=12)
    far = np.vstack([[[1e300, -1e300, 1e300]], X[1:]])
    for kind in (ResidualMean, ResidualSum):
        try:
            question = asked(kind, size=12, coef=np.array([1e200, 1e200, -1.0]), clip=clip)
            assert question.plan  # numbers that no grid holds are refused before anything is charged
        except InputError:
            continue
        result = replay(question, Rows(X, y=y, schema=schema), Rows(far, y=y, schema=schema))
        assert result.passed, str(result)


def test_bad_questions_are_named():
    for wrong, word in (
        ({"guarantee": PureDP(epsilon=1, relation="replace-one")}, "delta"),
        ({"guarantee": ApproxDP(**BUDGET, relation="add/remove")}, "replace-one"),
        ({"size": 0}, "size"),
        ({"clip": 0.0}, "clip"),
        ({"coef": [np.nan, 0, 0]}, "coef"),
        ({"whitening": np.eye(2)}, "whitening"),
    ):
        with pytest.raises(InputError, match=word):
            asked(ResidualSum, **wrong)
    with pytest.raises(InputError, match="label_bounds"):
        ShiftedRidge(**BUDGET, bounds=(-4, 4)).fit(*SOURCE, *TARGET)
    with pytest.raises(InputError, match="classes"):
        NoisyMajority(**BUDGET, bounds=(-4, 4)).fit(*classes())


@pytest.mark.parametrize("kind", [ShiftedRidge, OneSumRegressor, NoisyMean])
def test_regressors_keep_their_guarantee_and_the_labels_range(kind):
    model = clone(kind(**BUDGET, bounds=(-4, 4), label_bounds=(-1, 1)))
    rows = TARGET if kind is NoisyMean else (*SOURCE, *TARGET)
    found = model.fit(*rows).predict(TARGET[0])
    assert model.guarantee_ == CLAIM
    assert np.abs(found).max() <= 1


def test_without_noise_a_shift_is_the_mean_clipped_residual():
    model = ShiftedRidge(**HUGE, **PUBLIC).fit(*SOURCE, *TARGET)
    ridge = PublicRidge.fit(*SOURCE)
    bound = residual_bound(ridge, (-10, 10))
    left = np.clip(TARGET[1] - ridge.predict(TARGET[0]), -bound, bound)
    assert model.shift_ == pytest.approx(left.mean(), abs=1e-3)
    alone = NoisyMean(**HUGE, **PUBLIC).fit(*TARGET)
    assert alone.mean_ == pytest.approx(TARGET[1].mean(), abs=1e-3)


def test_without_noise_one_sum_is_its_formula_and_beats_the_shift():
    model = OneSumRegressor(**HUGE, **PUBLIC).fit(*SOURCE, *TARGET)
    ridge, question = PublicRidge.fit(*SOURCE), model.question_
    first = np.clip(TARGET[1] - ridge.predict(TARGET[0]), -question.clip, question.clip).mean()
    left = np.clip(TARGET[1] - ridge.predict(TARGET[0]) - first, -question.clip, question.clip)
    Z = question.features.apply(TARGET[0])
    assert model.shift_ == pytest.approx(first + left.mean(), abs=1e-3)
    assert model.slopes_ == pytest.approx(3 * (Z * left[:, None]).mean(axis=0), abs=1e-2)
    assert model.kept_ > 0.999
    shifted = ShiftedRidge(**HUGE, **PUBLIC).fit(*SOURCE, *TARGET)
    assert model.score(*TARGET) > shifted.score(*TARGET) + 0.05


def test_of_a_tiny_budget_nothing_much_is_believed():
    errors = []
    for seed in range(20):
        model = OneSumRegressor(epsilon=0.01, delta=1e-6, **PUBLIC, insecure_seed=seed)
        with pytest.warns(match="not private"):
            model.fit(*SOURCE, *TARGET)
        errors.append(model.kept_)
    assert np.mean(errors) < 0.4
    assert shrinkage(np.zeros(3), 1.0) == 0


def test_without_noise_counts_are_counts():
    X, y = classes()
    model = NoisyMajority(**HUGE, classes=("no", "yes"), bounds=(-4, 4)).fit(X, y)
    assert model.counts_ == pytest.approx([(y == "no").sum(), (y == "yes").sum()], abs=0.1)
    assert set(model.predict(X)) == {"no"}
    private = NoisyMajority(**BUDGET, classes=("no", "yes"), bounds=(-4, 4)).fit(X, y)
    assert private.guarantee_ == CLAIM
    assert private.shares_.sum() == pytest.approx(1)


def test_new_class_shares_correct_a_public_model():
    source, target = classes(share=0.5), classes(n=3000, share=0.05, seed=1)
    settings = {"classes": ("no", "yes"), "bounds": (-4, 4)}
    public = PublicLogistic(classes=("no", "yes")).fit(*source)
    exact = PriorCorrectedClassifier(**HUGE, **settings).fit(*source, *target)
    private = PriorCorrectedClassifier(**BUDGET, **settings).fit(*source, *target)
    assert exact.score(*target) > public.score(*target) + 0.05
    assert private.score(*target) > public.score(*target) + 0.05
    assert private.guarantee_ == CLAIM
    odds = public.predict_proba(target[0]) * exact.counts_.shares_ / public.shares_
    assert exact.predict_proba(target[0]) == pytest.approx(odds / odds.sum(axis=1, keepdims=True))
