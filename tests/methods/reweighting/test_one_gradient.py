"""One gradient at zero: when it is asked, what it learns, and that it falls back to the public model."""

import numpy as np
import pytest

from privada.methods.reweighting import ReweightedClassifier
from privada.methods.reweighting.default import plan
from privada.methods.reweighting.one_gradient import LOUD, _believed, loudness
from privada.privacy import Approximate

GUARANTEE = Approximate(epsilon=1, delta=1e-5, relation="replace-one")
DIRECTION = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])


def rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 6)) + 3.0


def classes(X, direction):
    return (X @ direction > 3 * direction.sum()).astype(int)


def fitted(epsilon, *, related, seed, size=60):
    Xs, Xt = rows(300, 1000 + seed), rows(size, seed)
    model = ReweightedClassifier(epsilon=epsilon, delta=1e-5, random_state=0, rehearsal=seed)
    public = DIRECTION if related else DIRECTION[::-1]
    with pytest.warns(UserWarning, match="not private"):
        return model.fit(Xs, classes(Xs, public), Xt, classes(Xt, DIRECTION))


def error(model, seed):
    X = rows(2000, 5000 + seed)
    return float(np.mean(model.predict(X) != classes(X, DIRECTION)))


@pytest.mark.parametrize(
    ("size", "settings", "loud"),
    [
        (60, {}, True),
        (2000, {}, False),
        (60, {"alpha": 0.3}, False),
        (60, {"selection": "private"}, False),
        (60, {"loss": "squared"}, False),
    ],
)
def test_it_is_asked_of_classes_of_few_rows_unless_more_is_wanted(size, settings, loud):
    X = rows(200, 0)
    made = plan(X, classes(X, DIRECTION), size=size, guarantee=GUARANTEE, **{"loss": "logistic"} | settings)
    assert made.loud == loud
    assert loud == (loudness(GUARANTEE, size=size, directions=7) > LOUD and not settings)
    if loud:
        assert made.rehearsed is None
        assert made.forecast == 1.0


def test_an_unrelated_source_does_not_stand_in_the_way():
    """The public model is wrong half of the time; fifteen targets of 60 rows at ε = 4."""
    errors = [error(fitted(4.0, related=False, seed=seed), seed) for seed in range(15)]
    assert np.mean(errors) < 0.3


def test_a_related_source_is_kept_where_the_noise_says_nothing():
    errors = [error(fitted(0.05, related=True, seed=seed), seed) for seed in range(10)]
    assert np.mean(errors) < 0.15


def test_one_release_of_one_gradient_uses_up_the_budget():
    model = fitted(1.0, related=True, seed=0)
    (release,) = model.releases_
    assert list(release.payload) == ["gradient_0"]
    assert model.guarantee_ == release.guarantee == GUARANTEE
    assert model.alpha_ == 0
    assert model.discrepancy_ is None
    assert model.predict_proba(rows(5, 9)).sum(axis=1) == pytest.approx(1)


def test_many_classes():
    Xs, Xt, X = rows(300, 1), rows(90, 2), rows(1000, 3)
    label = lambda part: np.digitize(part[:, 0], [2.6, 3.4])  # noqa: E731
    model = ReweightedClassifier(epsilon=4, delta=1e-5, random_state=0, rehearsal=1)
    with pytest.warns(UserWarning, match="not private"):
        model.fit(Xs, np.random.default_rng(0).permutation(label(Xs)), Xt, label(Xt))
    assert np.mean(model.predict(X) == label(X)) > 0.55
    assert model.coef_.shape == (6, 3)


def test_what_is_believed_lies_between_nothing_and_all():
    apart = np.array([[2.0, -1.0], [0.5, 0.0], [0.0, 3.0]])
    spread = np.array([1.0, 0.5, 0.1])
    assert _believed(apart, spread, np.full(3, 1e-12), 100.0) == pytest.approx(apart, abs=1e-6)
    assert not _believed(apart, spread, np.full(3, 1e6), 100.0).any()
    some = _believed(apart, spread, np.full(3, 0.3), 100.0)
    assert (np.abs(some) <= np.abs(apart)).all()
    assert some[0, 0] / apart[0, 0] > some[1, 0] / apart[1, 0]
    held = _believed(100 * apart, spread, np.full(3, 1.0), 0.3)  # longer than any gradient: noise
    assert np.abs(held).max() < 0.1 * 300
