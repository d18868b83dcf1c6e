"""The estimators: they adapt, keep private things private, and refuse bad input before any charge."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from privada import ReweightedClassifier, ReweightedRegressor
from privada.exceptions import InputError, PrivadaWarning, SchemaError
from privada.methods.reweighting import plan
from privada.parties import Number, Owner, Schema
from privada.parties.running import run
from privada.privacy import ApproxDP
from privada.privacy.accounting import curves
from privada.privacy.guarantee import split_budget

BUDGET = {"epsilon": 4.0, "delta": 1e-5}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def domains(seed=0, m=600, n=1500, d=4):
    rng = np.random.default_rng(seed)
    Xs, Xt = rng.normal(size=(m, d)), rng.normal(size=(n, d))
    shift = np.r_[1.0, -1.0, np.zeros(d - 2)]
    ys = Xs @ np.ones(d) + 0.3 * rng.normal(size=m)
    yt = Xt @ (np.ones(d) + shift) + 0.5 + 0.3 * rng.normal(size=n)
    return Xs, ys, Xt, yt


def test_a_regressor_learns_what_the_source_does_not_know():
    Xs, ys, Xt, yt = domains()
    model = ReweightedRegressor(**BUDGET, base="linear", random_state=0, insecure_seed=1).fit(Xs, ys, Xt, yt)
    assert model.score(Xt, yt) > 0.95
    assert model.score(Xs, ys) < 0.8
    assert model.coef_ == pytest.approx([2, 0, 1, 1], abs=0.2)
    assert model.intercept_ == pytest.approx(0.5, abs=0.15)
    assert model.predict(Xt[:9]) == pytest.approx(Xt[:9] @ model.coef_ + model.intercept_)
    assert model.guarantee_ == ApproxDP(**BUDGET, relation="replace-one")
    assert [release.kind for release in model.releases_] == ["reweighting.mixture", "reweighting.linear"]


def test_models_that_are_not_linear_take_part():
    rng = np.random.default_rng(0)
    Xs, Xt = rng.uniform(-2, 2, size=(900, 2)), rng.uniform(-2, 2, size=(900, 2))
    ys, yt = (np.abs(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=900) for X in (Xs, Xt))
    found = {}
    for base in ("auto", "linear"):
        model = ReweightedRegressor(**BUDGET, base=base, random_state=0, insecure_seed=1)
        found[base] = model.fit(Xs, ys, Xt, yt + 1).score(Xt, yt + 1)
        assert hasattr(model, "coef_") == (base == "linear")
    assert found["auto"] > 0.9 > found["linear"]
    with pytest.raises(InputError, match="base"):
        model.set_params(base="best").fit(Xs, ys, Xt, yt)


def test_predictions_keep_to_the_labels_public_limits():
    Xs, ys, Xt, yt = domains(n=300)
    far = 100 * np.array([[1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]])  # cut to the features' bounds
    model = ReweightedRegressor(
        **BUDGET, label_bounds=(-3, 2), base="linear", random_state=0, insecure_seed=1
    )
    assert model.fit(Xs, ys, Xt, yt).predict(far).tolist() == [2.0, -3.0]
    assert model.predict(Xt[:5] / 100) == pytest.approx(Xt[:5] / 100 @ model.coef_ + model.intercept_)
    wide = clone(model).set_params(label_bounds=None, bounds=(-99, 99)).fit(Xs, ys, Xt, yt)
    width = ys.max() - ys.min()
    assert wide.predict(far) == pytest.approx([ys.max() + width, ys.min() - width])


def test_three_forms_of_one_fit():
    Xs, ys, Xt, yt = domains(n=300)
    model = ReweightedRegressor(**BUDGET, base="linear", random_state=0, insecure_seed=1)
    first = clone(model).fit(Xs, ys, Xt, yt).coef_
    second = clone(model).fit(Xt, yt, Xs=Xs, ys=ys).coef_
    domain = np.r_[np.ones(len(Xs)), -np.ones(len(Xt))]
    third = clone(model).fit(np.vstack([Xs, Xt]), np.r_[ys, yt], sample_domain=domain).coef_
    assert np.array_equal(first, second)
    assert np.array_equal(first, third)


BEHIND = pytest.mark.xfail(reason="moments of least squares gain 0.04 where a logistic descent gained 0.05")


@pytest.mark.parametrize(("K", "gain"), [(2, 0.03), pytest.param(2, 0.05, marks=BEHIND), (3, 0.05)])
def test_a_classifier_learns_what_the_source_does_not_know(K, gain):
    rng = np.random.default_rng(2)
    W, turn = rng.normal(size=(4, K)), rng.normal(size=(4, K))
    Xs, Xt = rng.normal(size=(600, 4)), rng.normal(size=(3000, 4))
    names = np.array(["a", "b", "c"])[:K]
    ys = names[(2 * Xs @ W + rng.gumbel(size=(600, K))).argmax(1)]
    yt = names[(2 * Xt @ (W + turn) + rng.gumbel(size=(3000, K))).argmax(1)]
    model = ReweightedClassifier(**BUDGET, random_state=0, insecure_seed=1).fit(Xs, ys, Xt, yt)
    features = model.model_.features
    scores = Xt @ features.weights + features.starts[: features.outputs]
    warm = names[(scores[:, 0] > 0).astype(int)] if K == 2 else names[scores.argmax(1)]
    assert model.score(Xt, yt) > (warm == yt).mean() + gain
    assert model.predict_proba(Xt).sum(axis=1) == pytest.approx(1)
    assert model.classes_.tolist() == names.tolist()


def test_no_weight_of_a_private_row_is_kept():
    """Nothing in a fitted estimator has one entry a private row."""
    Xs, ys, Xt, yt = domains(n=777)
    model = ReweightedRegressor(**BUDGET, random_state=0, insecure_seed=1).fit(Xs, ys, Xt, yt)

    def shapes(value, seen):
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            yield value.shape
        elif isinstance(value, (tuple, list)):
            for part in value:
                yield from shapes(part, seen)
        elif isinstance(value, dict):
            for part in value.values():
                yield from shapes(part, seen)
        elif hasattr(value, "__dict__"):
            yield from shapes(vars(value), seen)

    found = list(shapes(vars(model), set()))
    assert len(found) > 5
    assert not any(777 in shape for shape in found)


def test_an_expected_loss_is_said():
    """Sixty rows at a tiny epsilon, and a source that linear models explain: what is learnt is noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.5 * rng.normal(size=600)
    tight = ApproxDP(epsilon=0.01, delta=1e-6, relation="replace-one")
    made = plan(X, y, size=60, guarantee=tight)
    assert not made.forecast.worthwhile
    model = ReweightedRegressor(epsilon=0.01, delta=1e-6)
    with pytest.warns(PrivadaWarning, match="keep the budget"):
        model.fit(X, y, X[:60], y[:60])
    assert not model.forecast_.worthwhile


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
@pytest.mark.parametrize(
    ("m", "n", "epsilon"), [(30, 1, 1.0), (30, 10, 0.1), (200, 1, 1.0), (200, 100, 1e-4)]
)
def test_noise_is_not_taken_for_a_correction(m, n, epsilon):
    """The public model has an error of 0.01; before noise was known by its size, some of these had 30."""
    rng = np.random.default_rng(0)
    Xs, Xt, X = (rng.normal(size=(rows, 3)) for rows in (m, n, 500))
    ys, yt, y = (each.sum(axis=1) + 0.1 * rng.normal(size=len(each)) for each in (Xs, Xt, X))
    for seed in range(5):
        model = ReweightedRegressor(epsilon=epsilon, delta=1e-5, random_state=0, insecure_seed=seed)
        model.fit(Xs, ys, Xt, yt)
        assert np.mean((model.predict(X) - y) ** 2) < 1.0


def test_labels_and_their_bounds_are_checked_by_name():
    Xs, ys, Xt, yt = domains(m=60, n=50)
    with pytest.raises(InputError, match="ReweightedClassifier"):
        ReweightedRegressor(**BUDGET).fit(Xs, np.where(ys > 0, "a", "b"), Xt, yt)
    with pytest.raises(InputError, match=r"\(low, high\)"):
        ReweightedRegressor(**BUDGET, label_bounds=(1,)).fit(Xs, ys, Xt, yt)


@pytest.mark.parametrize(
    "case", ["one private row", "constant target", "collinear", "m much smaller than n", "one public class"]
)
def test_odd_cases_have_sensible_answers(case):
    Xs, ys, Xt, yt = domains(m=60, n=200)
    if case == "one private row":
        Xt, yt = Xt[:1], yt[:1]
    if case == "constant target":
        ys, yt = np.ones_like(ys), np.ones_like(yt)
    if case == "collinear":
        Xs, Xt = np.hstack([Xs, Xs]), np.hstack([Xt, Xt])
    if case == "m much smaller than n":
        Xs, ys = Xs[:5], ys[:5]
    if case == "one public class":
        model = ReweightedClassifier(**BUDGET, classes=(0, 1, 2), random_state=0, insecure_seed=1)
        model.fit(Xs, 0 * ys.astype(int), Xt, (yt > 0).astype(int))
        assert model.predict_proba(Xt).sum(axis=1) == pytest.approx(1)
        return
    model = ReweightedRegressor(**BUDGET, random_state=0, insecure_seed=1).fit(Xs, ys, Xt, yt)
    assert np.isfinite(model.predict(Xt)).all()


def test_bad_input_is_named():
    Xs, ys, Xt, yt = domains(m=60, n=50)
    model = ReweightedRegressor(**BUDGET)
    with pytest.raises(InputError, match="labels"):
        model.fit(Xs, ys, Xt)
    with pytest.raises(InputError, match="one width"):
        model.fit(Xs, ys, Xt[:, :2], yt)
    with pytest.raises(SchemaError, match="missing"):
        model.fit(Xs, ys, np.where(np.arange(4) == 1, np.nan, Xt), yt)
    with pytest.raises(InputError, match="finite"):
        model.fit(np.where(np.arange(4) == 1, np.inf, Xs), ys, Xt, yt)
    with pytest.raises(InputError, match="epsilon and rho"):
        ReweightedRegressor().fit(Xs, ys, Xt, yt)
    with pytest.raises(InputError, match="epsilon, delta"):
        ReweightedRegressor(epsilon=1).fit(Xs, ys, Xt, yt)
    with pytest.raises(InputError, match="other than 0"):
        model.fit(Xs, 0 * ys, Xt, yt)
    with pytest.raises(InputError, match="sample_domain"):
        model.fit(Xs, ys)
    with pytest.raises(SchemaError, match="public classes"):
        ReweightedClassifier(**BUDGET).fit(Xs, ys > 0, Xt, np.full(50, 7))


def test_selection_and_descent_together_keep_the_guarantee():
    for epsilon in (0.1, 1.0, 4.0, 20.0):
        whole = ApproxDP(epsilon=epsilon, delta=1e-5, relation="replace-one")
        share, rest = split_budget(whole, 0.1)
        rho = share.rho + rest.rho
        assert curves.zcdp_delta(epsilon, rho) <= 1e-5
        assert curves.zcdp_delta(epsilon, 1.001 * rho) > 1e-5


def test_nothing_is_charged_for_rows_that_are_refused():
    Xs, ys, Xt, yt = domains(m=60, n=50)
    guarantee = ApproxDP(**BUDGET, relation="replace-one")
    schema = Schema.of_numbers(
        bounds=(-5.0, 5.0), width=4, size=50, label=Number(name="label", low=-9.0, high=9.0)
    )
    made = plan(Xs, ys, size=50, guarantee=guarantee, random_state=0)
    for spoilt in (np.nan, np.inf):
        rows = Xt.copy()
        rows[3, 1] = spoilt
        with pytest.raises(SchemaError):
            Owner(rows, y=yt, schema=schema, dataset="t", budget=guarantee, accounting="gaussian")
    owner = Owner(Xt, y=yt, schema=schema, dataset="t", budget=guarantee, accounting="gaussian")
    with pytest.raises(InputError, match="size"):
        owner.answer(replace(made.mixture(), size=49))
    opened = len(owner.ledger.export()["datasets"]["t"]["lines"])
    assert owner.ledger.export()["datasets"]["t"]["spent"] == 0
    run(made.inquiry("t"), {"t": owner})
    assert len(owner.ledger.export()["datasets"]["t"]["lines"]) == opened + 1
    assert owner.ledger.export()["datasets"]["t"]["spent"] > 0
