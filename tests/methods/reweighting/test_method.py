"""The paper's own algorithms, reached from estimators and from studies."""

import warnings

import numpy as np
import onnxruntime as ort
import pytest
from sklearn.base import clone

import privada
from privada import Owner, ReweightedClassifier, ReweightedRegressor, Schema, run
from privada._toml import Section
from privada.exceptions import InputError, StudyError
from privada.methods.method import Public
from privada.methods.reweighting.method import Reweighting
from privada.parties import Category, Number
from privada.privacy import ApproxDP

BUDGET = {"epsilon": 2.0, "delta": 1e-6}
GUARANTEE = ApproxDP(**BUDGET, relation="replace-one")
RNG = np.random.default_rng(0)
XS, XT = RNG.uniform(-0.6, 0.6, size=(600, 4)), RNG.uniform(-0.6, 0.6, size=(2000, 4))
SOURCE_RULE, TARGET_RULE = np.array([0.4, 0.0, 0.4, 0.0]), np.array([0.4, 0.4, 0.4, 0.0])
NAMES = np.array(["a", "b", "c"])
SOURCE_RULES, CHANGES = (np.random.default_rng(seed).normal(size=(4, 3)) for seed in (1, 2))


def labels(n_classes):
    """Labels of both sides, by the rules of numbers or of classes."""
    if not n_classes:
        return XS @ SOURCE_RULE, XT @ TARGET_RULE
    rules, changes = SOURCE_RULES[:, :n_classes], CHANGES[:, :n_classes]
    return NAMES[(XS @ rules).argmax(axis=1)], NAMES[(XT @ (rules + changes)).argmax(axis=1)]


def make(n_classes, **settings):
    kind = ReweightedClassifier if n_classes else ReweightedRegressor
    algorithm = "pncnvxadap" if n_classes else "pcnvxadap"
    return kind(**({"algorithm": algorithm, "insecure_seed": 1} | BUDGET | settings))


def fit(model, n_classes):
    ys, yt = labels(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(XS, ys, XT, yt)


def schema(n_classes):
    names = tuple(NAMES[:n_classes].tolist())
    label = Category(name="y", values=names) if n_classes else Number(name="y", low=-1.0, high=1.0)
    return Schema.of_numbers(bounds=(-1.0, 1.0), width=4, size=len(XT), label=label)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_estimators_learn_what_the_source_does_not_know(n_classes):
    model, (_, yt) = fit(make(n_classes), n_classes), labels(n_classes)
    if n_classes:
        rules = SOURCE_RULES[:, :n_classes]
        public = (NAMES[(XT @ rules).argmax(axis=1)] == yt).mean()
        assert model.score(XT, yt) > public + 0.04
        assert model.predict_proba(XT).sum(axis=1) == pytest.approx(1)
    else:
        assert model.score(XT, yt) > 0.9 > 1 - np.mean((XT @ SOURCE_RULE - yt) ** 2) / np.var(yt)
        assert model.coef_ == pytest.approx(TARGET_RULE, abs=0.15)
        inside = XT[:9] / 10  # rows whose norm is not clipped
        assert model.predict(inside) == pytest.approx(inside @ model.coef_ + model.intercept_)
    kinds = ("finite-discrepancy", "nonconvex") if n_classes else ("discrepancy", "convex")
    assert [release.kind for release in model.releases_] == [f"reweighting.{kind}" for kind in kinds]
    assert model.guarantee_ == GUARANTEE
    assert model.forecast_ is None
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_models_are_saved_drawn_and_exported(n_classes, tmp_path):
    model = fit(make(n_classes, steps=5, options={"radius": 4.0}), n_classes)
    again = privada.load(model.save(tmp_path / "model.privada"))
    rows = 2 * XT[:50]  # some are beyond the bounds and the norm
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert again.options == {"radius": 4.0}
    session = ort.InferenceSession(model.to_onnx(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, {"X": rows}), strict=True))
    if n_classes:
        assert outputs["probabilities"] == pytest.approx(model.predict_proba(rows), abs=1e-9)
    else:
        assert outputs["prediction"][:, 0] == pytest.approx(model.predict(rows), abs=1e-9)
    (axes,) = model.plot().axes
    assert len(axes.get_yticklabels()) == 4 or len(axes.get_xticklabels()) == 4


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_study_learns_what_the_estimator_learns(n_classes, tmp_path):
    ys, yt = labels(n_classes)
    np.savetxt(tmp_path / "source.csv", np.column_stack([XS.astype(str), ys.astype(str)]), "%s", ",")
    about = schema(n_classes)
    text = f"""
source = "source.csv"
algorithm = "{"pncnvxadap" if n_classes else "pcnvxadap"}"
alpha = 0.2
steps = 20
norm_bound = 1.1
options = {{ kappa1 = 0.5, radius = 3 }}
"""
    section = Section.parse(text, name="study.toml")
    inquiry = Reweighting.inquire(
        section, schemas={"clinic": about}, guarantee=GUARANTEE, home=tmp_path, seed=0
    )
    with pytest.warns(privada.exceptions.RehearsalWarning):
        owner = Owner(
            XT,
            y=yt,
            schema=about,
            dataset="rows",
            budget=GUARANTEE,
            accounting="gaussian",
            insecure_seed=1,
        )
    model = run(inquiry, {"clinic": owner})
    assert 0 <= owner.ledger.remaining("rows").share < 1e-3
    assert (model.question.penalties.alpha, model.question.steps, model.question.r) == (0.2, 20, 1.1)
    assert (model.question.penalties.kappa1, model.question.A) == (0.5, 3.0)
    estimator = Reweighting.make_estimator(inquiry, schema=about, guarantee=GUARANTEE)(model)
    settings = {"alpha": 0.2, "steps": 20, "norm_bound": 1.1, "options": {"kappa1": 0.5, "radius": 3.0}}
    assert settings.items() <= estimator.get_params().items()
    twin = fit(make(n_classes, bounds=(-1, 1), **settings), n_classes)
    assert np.array_equal(twin.predict(XT), estimator.predict(XT))
    assert set(model.axes(about)) == {"coef"}


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"algorithm": "pncnvxadap"}, "pncnvxadap"),
        ({"label_bounds": (0, 20)}, "from -1 to 1"),
        ({"options": {"kappa": 1.0}}, "options"),
        ({"options": {"radius": 0.0}}, "radius"),
        ({"norm_bound": -1.0}, "norm_bound"),
        ({"alpha": 1.5}, "alpha"),
        ({"steps": 0}, "steps"),
    ],
    ids=["classes", "range", "option", "radius", "norm", "alpha", "steps"],
)
def test_bad_settings_are_named(settings, word):
    with pytest.raises(InputError, match=word):
        fit(make(0, **settings), 0)


def test_labels_beyond_the_algorithms_range_are_refused():
    public = Public(XS, 5 * (XS @ SOURCE_RULE))
    with pytest.raises(InputError, match="from -1 to 1"):
        Reweighting(algorithm="pcnvxadap").prepare(public, {"clinic": schema(0)}, GUARANTEE)


def test_a_study_names_the_option_that_nobody_knows(tmp_path):
    np.savetxt(tmp_path / "source.csv", np.column_stack([XS, XS @ SOURCE_RULE]), delimiter=",")
    text = 'source = "source.csv"\nalgorithm = "pcnvxadap"\noptions = { kapa = 1 }'
    section = Section.parse(text, name="study.toml")
    with pytest.raises(StudyError, match="kapa"):
        Reweighting.inquire(
            section, schemas={"clinic": schema(0)}, guarantee=GUARANTEE, home=tmp_path, seed=0
        )
