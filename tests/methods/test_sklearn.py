"""scikit-learn's own checks over every estimator, with every failure explained, and skada's pipeline."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import check_estimator

from privada.exceptions import InputError
from privada.methods.reweighting import deep
from tests.methods.every_estimator import CASES, NAMES

pytestmark = pytest.mark.filterwarnings("ignore")
every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
PUBLIC = (
    "the check fits rows of its own: classes, bounds, width or the other domain are public and never guessed"
)
WORDS = "the check wants scikit-learn's words in a message; ours names the parameter"
EXPECTED = {  # every check that some estimator fails, and why that is right
    PUBLIC: """
        check_classifier_data_not_an_array check_classifiers_classes check_classifiers_train check_clustering
        check_dict_unchanged check_dont_overwrite_parameters check_dtype_object check_estimators_dtypes
        check_estimators_fit_returns_self check_estimators_overwrite_params check_estimators_pickle
        check_f_contiguous_array_estimator check_fit2d_predict1d check_fit_check_is_fitted
        check_fit_idempotent check_fit_score_takes_y check_n_features_in check_n_features_in_after_fitting
        check_positive_only_tag_during_fit check_readonly_memmap_input check_regressor_data_not_an_array
        check_regressors_int check_regressors_no_decision_function check_regressors_train
        check_supervised_y_2d check_transformer_data_not_an_array check_transformer_general
    """,
    WORDS: """
        check_classifiers_one_label check_classifiers_regression_target check_complex_data
        check_estimators_empty_data_messages check_estimators_nan_inf check_fit2d_1feature check_fit2d_1sample
        check_requires_y_none
    """,
}
REASONS = {check: reason for reason, checks in EXPECTED.items() for check in checks.split()}


@pytest.fixture(autouse=True)
def short_public_fits(monkeypatch):
    monkeypatch.setattr(deep, "PUBLIC_STEPS", 3)


@every_case
def test_scikit_learns_checks_fail_only_where_that_is_explained(case):
    results = check_estimator(case.make(), on_fail=None, expected_failed_checks=REASONS)
    fine = ("passed", "xfail", "skipped")
    unexplained = {each["check_name"]: each["exception"] for each in results if each["status"] not in fine}
    assert unexplained == {}
    failures = [each["exception"] for each in results if each["status"] == "xfail"]
    assert [each for each in failures if not isinstance(each, (AssertionError, ValueError))] == []
    assert sum(each["status"] == "passed" for each in results) >= 15


def test_every_explained_failure_happens():
    failed = set()
    for case in CASES:
        results = check_estimator(case.make(), on_fail=None, expected_failed_checks=REASONS)
        failed |= {each["check_name"] for each in results if each["status"] == "xfail"}
        if failed == set(REASONS):
            break
    assert failed == set(REASONS)


@every_case
def test_before_fit_it_says_so(case):
    X, _ = case.private()
    for name in ("predict", "predict_proba", "transform", "train"):
        if hasattr(case.make(), name):
            with pytest.raises(NotFittedError):
                getattr(case.make(), name)(X)


@every_case
def test_its_diagram_and_its_tags(case):
    model = case.make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert case.name in estimator_html_repr(model)
        assert case.name in estimator_html_repr(clone(model))
    assert model.__sklearn_tags__().non_deterministic


SKADA = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from skada import make_da_pipeline
from privada import Dataset
from privada.exceptions import InputError
from tests.methods.every_estimator import CASES, table

(Xs, ys, ns), (Xt, yt, nt) = table(1, 80), table(2, 90)
X, sample_domain = np.vstack([Xs, Xt]), np.repeat([1, -1], [80, 90])
LABELS = {"class": (np.r_[ys, yt] == "yes").astype(int), "number": np.r_[ns, nt], "none": None}
for case in CASES:
    if case.name.startswith(("Cell", "Private", "Deep")):
        continue
    more = {"classes": (0, 1)} if "classes" in case.settings else {}
    private = "source" if case.name.startswith(("Transport", "Source")) else "target"
    more |= {"dataset": Dataset(table=private)} | ({"size": 90} if "size" in case.settings else {})
    model = case.make(**more)
    y = LABELS[case.label]
    pipeline = make_da_pipeline(model)
    if case.name.startswith(("Marginal", "Reweighted")):
        masked = np.where(sample_domain < 0, np.nan if case.label == "number" else -1, y)
        try:
            pipeline.fit(X, masked, sample_domain=sample_domain)
        except InputError as error:
            assert "mask_target_labels=False" in str(error), error
        else:
            raise AssertionError(case.name)
    elif y is not None:
        y = np.where(sample_domain < 0, -1, y)
    pipeline.fit(X, y, sample_domain=sample_domain)
    found = pipeline.predict(Xt, sample_domain=sample_domain[sample_domain < 0])
    assert found.shape == (90,)
    inner = pipeline[-1].base_estimator_
    assert inner.spent_ is not None and inner.n_features_in_ == 2
    print(case.name)
"""


def test_skadas_pipeline_works_for_every_estimator_that_adapts():
    """In a process of its own: importing skada changes scikit-learn's settings."""
    pytest.importorskip("skada")
    done = subprocess.run([sys.executable, "-c", SKADA], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.split()) == 6


@every_case
def test_sparse_rows_get_a_sentence(case):
    from scipy.sparse import csr_array

    X, y = case.private()
    with pytest.raises(InputError, match="Expected X to be dense, got a sparse matrix; use X.toarray()"):
        case.make().fit(csr_array(X), y, **case.public)


def framed(case):
    """The case with frames in the place of arrays."""
    pandas = pytest.importorskip("pandas")
    X, y = case.private()
    frame = pandas.DataFrame(X, columns=["age", "dose"])
    public = {
        key: pandas.DataFrame(value, columns=["age", "dose"]) if key in ("Xs", "Xt", "source") else value
        for key, value in case.public.items()
    }
    return frame, y, public


@every_case
def test_columns_are_found_by_name(case):
    frame, y, public = framed(case)
    model = case.make().fit(frame, y, **public)
    assert model.feature_names_in_.tolist() == ["age", "dose"]
    if not hasattr(model, "predict"):
        return
    expected = model.predict(frame)
    assert np.array_equal(model.predict(frame[["dose", "age"]]), expected)
    assert np.array_equal(model.predict(frame.to_numpy()), expected)
    with pytest.raises(InputError, match="missing: 'age'; unknown: 'size'"):
        model.predict(frame.rename(columns={"age": "size"}))
    with pytest.raises(InputError, match="X has 1 features, but"):
        model.predict(frame.to_numpy()[:, :1])


@every_case
def test_source_and_target_frames_are_matched_by_name(case):
    frame, y, public = framed(case)
    if not any(hasattr(each, "columns") for each in public.values()):
        pytest.skip("it has one domain")
    settings = {"insecure_seed": 5}
    expected = case.make(**settings).fit(frame, y, **public).predict(frame)
    assert np.array_equal(
        case.make(**settings).fit(frame[["dose", "age"]], y, **public).predict(frame), expected
    )
    with pytest.raises(InputError, match="unknown: 'size'"):
        case.make().fit(frame.rename(columns={"age": "size"}), y, **public)


def test_text_categories_and_missing_values_by_a_schema():
    pandas = pytest.importorskip("pandas")
    from privada import Category, Number, ReweightedClassifier, Schema

    rng = np.random.default_rng(0)

    def made(rows):
        frame = pandas.DataFrame({"ward": rng.choice(["a", "b"], rows), "age": rng.uniform(0, 90, rows)})
        label = np.where((frame["ward"] == "a") ^ (rng.uniform(size=rows) < 0.1), "ill", "well")
        frame.loc[::7, "age"] = np.nan
        return frame, label

    schema = Schema(
        columns=[Category(name="ward", values=("a", "b")), Number(name="age", low=0, high=90, missing=True)]
    )
    (Xs, ys), (Xt, yt) = made(200), made(300)
    model = ReweightedClassifier(epsilon=2, delta=1e-5, schema=schema, base="linear", random_state=0)
    model.fit(Xs, ys, Xt[["age", "ward"]], yt)
    assert model.score(Xt, yt) > 0.8
    assert model.feature_names_in_.tolist() == ["ward", "age"]
    with pytest.raises(InputError, match="ward"):
        model.predict(Xt[["age"]])
