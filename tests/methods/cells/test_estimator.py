import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from privada import CellClassifier, CellMeans, NearestCells, Number, Schema
from privada.exceptions import InputError, RehearsalWarning, SchemaError


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X[:, 10:50] / 16
    centers = KMeans(30, n_init=1, random_state=0).fit(X[::2]).cluster_centers_
    return X[1::2], y[1::2], centers


@pytest.mark.parametrize("price", [{"epsilon": 2.0}, {"rho": 0.5}, {"epsilon": 2.0, "delta": 1e-6}])
def test_it_learns_labels_from_private_counts(digits, price):
    X, y, centers = digits
    model = CellClassifier(centers, classes=range(10), bounds=(0, 1), insecure_seed=1, **price)
    with pytest.warns(RehearsalWarning):
        model.fit(X, y)
    assert model.score(X, y) > 0.6
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert str(model.guarantee_).endswith("add/remove one row")


def test_less_epsilon_is_less_accurate(digits):
    X, y, centers = digits
    scores = []
    for epsilon in (0.02, 2.0):
        with pytest.warns(RehearsalWarning):
            model = CellClassifier(
                centers, classes=range(10), bounds=(0, 1), epsilon=epsilon, insecure_seed=1
            ).fit(X, y)
        scores.append(model.score(X, y))
    assert scores[0] < scores[1] - 0.1


def test_means_approach_the_truth(digits):
    rng = np.random.default_rng(3)
    truth = np.array([[0.2, 0.2], [0.8, 0.7]])
    X = np.clip(np.vstack([rng.normal(m, 0.05, size=(2000, 2)) for m in truth]), 0, 1)
    start = truth + 0.1
    model = CellMeans(start, bounds=(0, 1), radius=0.4, epsilon=1, insecure_seed=0)
    with pytest.warns(RehearsalWarning):
        model.fit(X)
    assert np.abs(model.means_ - truth).max() < 0.01
    assert np.abs(model.counts_ - 2000).max() < 60


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"epsilon": -1}, "epsilon > 0"),
        ({"bounds": None}, "none are guessed"),
        ({"classes": None}, "none are taken from y"),
        ({"centers": None}, "centers"),
        ({"relation": "swap"}, "relation"),
    ],
)
def test_nothing_is_guessed(change, message):
    good = {"centers": [[0.0], [1.0]], "classes": (0, 1), "bounds": (0, 1), "epsilon": 1}
    with pytest.raises(InputError, match=message):
        CellClassifier(**(good | change)).fit(np.array([[0.5]]), np.array([0]))


def test_bad_rows():
    model = CellClassifier([[0.0], [1.0]], classes=(0, 1), bounds=(0, 1), epsilon=1)
    with pytest.raises(SchemaError, match="missing"):
        model.fit(np.array([[np.nan]]), np.array([0]))
    with pytest.raises(SchemaError, match="public classes"):
        model.fit(np.array([[0.5]]), np.array([7]))
    with pytest.raises(NotFittedError):
        model.predict([[0.5]])
    fitted = model.fit(np.array([[0.5]]), np.array([0]))
    with pytest.raises(InputError, match="1 columns"):
        fitted.predict([[0.5, 0.1]])


def test_it_keeps_nothing_exact(digits):
    X, y, centers = digits
    model = CellClassifier(centers, classes=range(10), bounds=(0, 1), epsilon=0.5).fit(X, y)
    exact = np.zeros((len(centers), 10))
    np.add.at(exact, (NearestCells(centers=centers).assign(X), y), 1)
    arrays = {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    assert arrays["counts_"].shape == exact.shape
    for name, value in arrays.items():
        assert value.shape[:1] != X.shape[:1], f"{name} has a row for each private row"
        assert not np.array_equal(value, exact), f"{name} is exact"


def test_replace_one_needs_the_size():
    model = CellClassifier([[0.0], [1.0]], classes=(0, 1), bounds=(0, 1), epsilon=1, relation="replace-one")
    with pytest.raises(SchemaError, match="declare it"):
        model.fit(np.array([[0.5]]), np.array([0]))
    model.set_params(size=1).fit(np.array([[0.5]]), np.array([0]))
    assert str(model.guarantee_) == "ε = 1 (pure), replace-one row"


def test_the_old_name_of_the_radius_still_works():
    with pytest.warns(DeprecationWarning, match="norm_bound= is now radius="):
        model = CellMeans([[0.0], [1.0]], bounds=(0, 1), norm_bound=0.5, epsilon=1)
    assert model.radius == 0.5
    with pytest.raises(InputError, match="Expected radius"):
        model.set_params(radius=None).fit([[0.5]])


def test_bins_of_one_feature_are_cells_by_name_or_number():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 90, size=(2000, 2))
    y = np.digitize(X[:, 1], [30, 60])
    about = {"classes": (0, 1, 2), "bounds": (0, 90), "epsilon": 2}
    by_number = CellClassifier(bins={1: [30, 60]}, **about).fit(X, y)
    frame = pd.DataFrame(X, columns=["dose", "age"])
    by_name = CellClassifier(bins={"age": [30, 60]}, **about).fit(frame, y)
    assert by_number.score(X, y) > 0.95
    assert by_name.score(frame[["age", "dose"]], y) > 0.95
    assert by_name._cell_names() == ["age < 30", "30 <= age < 60", "age >= 60"]
    with pytest.raises(InputError, match="bins of one feature"):
        CellClassifier(bins={0: [1], 1: [2]}, **about).fit(X, y)
    with pytest.raises(InputError, match="Expected bins of dose, age, got 'aged'"):
        CellClassifier(bins={"aged": [1]}, **about).fit(frame, y)
    with pytest.raises(InputError, match="has no ONNX form"):
        by_name.to_onnx()


def test_a_missing_value_has_a_bin_of_its_own():
    pd = pytest.importorskip("pandas")
    age = np.where(np.arange(900) % 3 == 0, np.nan, 50.0)
    schema = Schema(columns=[Number(name="age", low=0, high=90, missing=True)])
    model = CellClassifier(bins={"age": [40]}, classes=(0, 1), schema=schema, epsilon=2)
    frame, y = pd.DataFrame({"age": age}), np.isnan(age).astype(int)
    assert model.fit(frame, y).score(frame, y) == 1.0
    assert model.counts_.shape == (3, 2)


def test_a_radius_gives_a_classifier_means():
    X, y = np.array([[0.1], [0.9]] * 300), np.array([0, 1] * 300)
    model = CellClassifier(
        [[0.0], [1.0]], classes=(0, 1), bounds=(0, 1), radius=0.5, recentred=True, epsilon=5
    )
    np.testing.assert_allclose(model.fit(X, y).means_, [[0.1], [0.9]], atol=0.05)
    assert model.score(X, y) == 1.0
