from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from privada import PrivateSummarizer
from privada.exceptions import InputError, PrivacyLeakWarning, SchemaError
from privada.methods.summarization import mmd2

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")


def made(size=100, **more):
    settings = {"gamma": 0.1, "epsilon": 3, "delta": 1e-3, "random_state": 0, "insecure_seed": 3} | more
    return PrivateSummarizer(size, **settings)


@pytest.fixture(scope="module")
def shift():
    """Digits: the validation set is upright, and so are most rows of the first of three owners only."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    rows, labels = X[order] / 16, y[order]
    # at this scale the median squared distance of rows that nobody holds is 1/γ
    scale = 1 / np.sqrt(0.1 * np.median(pdist(rows[1600:], "sqeuclidean")))
    rows = rows * scale
    turned = np.rot90(rows[:600].reshape(-1, 8, 8), axes=(1, 2)).reshape(3, 200, 64)
    parts = labels[:600].reshape(3, 200)
    owners = [
        (np.vstack([rows[600:1129], turned[0]]), np.r_[labels[600:1129], parts[0]]),
        (turned[1], parts[1]),
        (turned[2], parts[2]),
    ]
    return SimpleNamespace(
        owners=owners,
        validation=rows[1129:1229],
        test=(rows[1229:1529], labels[1229:1529]),
        bounds=(0.0, scale),
        classes=tuple(range(10)),
    )


def test_it_matches_better_than_uniform_and_trains(shift):
    model = made(bounds=shift.bounds, classes=shift.classes)
    with pytest.warns(PrivacyLeakWarning):
        model.fit(shift.validation, owners=list(shift.owners))
    rng = np.random.default_rng(0)
    uniform = np.vstack([X[rng.choice(len(X), 33, replace=False)] for X, _ in shift.owners])
    ours, theirs = (mmd2(X, shift.validation, gamma=0.1) for X in (model.X_, uniform))
    assert ours < 0.6 * theirs
    assert (model.owner_ == "owner 0").mean() > 0.8
    assert model.summary_.points_seen == 100
    assert model.train(LogisticRegression(max_iter=500)).score(*shift.test) > 0.7
    assert set(model.y_) <= set(shift.classes)
    assert str(model.guarantee_).endswith("replace-one row")
    assert len(model.releases_) == 7
    assert model.against_ == "any coalition of owners"


def test_obvious_and_impossible_cases():
    rng = np.random.default_rng(1)
    V, A = rng.uniform(size=(50, 2)), rng.uniform(size=(30, 2))
    alone = made(10, bounds=(0, 1), delta=1e-5).fit(V, owners={"only": A, "empty": A[:0]})
    assert set(alone.owner_) == {"only"}
    everything = made(30, bounds=(0, 1), delta=1e-5).fit(V, owners=[A])
    assert np.array_equal(np.sort(everything.X_, axis=0), np.sort(A, axis=0))
    with pytest.raises(InputError, match="at most 30, all rows"):
        made(31, bounds=(0, 1), delta=1e-5).fit(V, owners=[A])


@pytest.mark.parametrize(
    ("more", "owners", "match"),
    [
        ({"gamma": None}, [np.zeros((3, 2))], "gamma and bounds"),
        ({"epsilon": None, "delta": None}, [np.zeros((3, 2))], "epsilon and rho"),
        ({}, None, "Expected owners"),
        ({}, [], "at least one array"),
        ({}, [np.zeros(3)], "to be a matrix"),
        ({}, [(np.zeros((3, 2)), [0, 1, 0])], "Expected classes"),
        ({}, [np.zeros((3, 3))], "matrix of 2 columns"),
        ({"size": 0}, [np.zeros((3, 2))], "size"),
        ({"n_features": 5}, [np.zeros((3, 2))], "even"),
    ],
)
def test_bad_input_is_named(more, owners, match):
    model = made(**({"size": 2, "bounds": (0, 1), "delta": 1e-5} | more))
    with pytest.raises(InputError, match=match):
        model.fit(np.zeros((40, 2)), owners=owners)


def test_missing_values_are_found_before_anything_is_charged():
    rows = np.zeros((20, 2))
    rows[3, 1] = np.nan
    for X, owners in ((rows, [np.zeros((9, 2))]), (np.zeros((9, 2)), [rows])):
        with pytest.raises(SchemaError):
            made(2, bounds=(0, 1), delta=1e-5).fit(X, owners=owners)
