"""TransportClassifier as a user meets it."""

import warnings

import numpy as np
import pytest

from privada.exceptions import InputError, PrivadaWarning, RehearsalWarning, SchemaError
from privada.methods.transport import FeatureMap, TransportClassifier, private_wasserstein

PLACES = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.2, 0.0]])
CLASSES = ("a", "b", "c")
SETTINGS = {"epsilon": 2.0, "delta": 1e-4, "classes": CLASSES, "bounds": (-3, 3)}


def domain(n, seed, shift=0.0, classes=3, spread=0.25):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return PLACES[y] + rng.normal(0, spread, (n, 3)) + shift, np.array(CLASSES)[y]


SOURCE, TARGET = domain(300, 0), domain(120, 1, shift=0.4)


def accuracy(model, X=TARGET[0], y=TARGET[1]):
    return float((model.predict(X) == y).mean())


@pytest.mark.parametrize("release", ["descent", "statistics", "rows"])
def test_all_releases_classify_the_target(release):
    epsilon = 20.0 if release == "rows" else 2.0
    model = TransportClassifier(**SETTINGS | {"epsilon": epsilon}, algorithm=release, insecure_seed=0)
    with pytest.warns(RehearsalWarning):
        model.fit(*SOURCE, TARGET[0])
    assert accuracy(model) > 0.95
    assert np.array_equal(model.transduction_, model.predict(TARGET[0]))
    sources = 300 if release == "rows" else 3
    assert model.coupling_.shape == (sources, 120)
    assert model.mapped_.shape == (sources, 3)
    assert model.coupling_.sum() == pytest.approx(1, abs=1e-3)
    assert "replace-one" in str(model.guarantee_)


def test_both_forms_of_fit_are_one():
    X = np.concatenate([SOURCE[0], TARGET[0]])
    y = np.concatenate([SOURCE[1].astype(object), np.full(120, None, dtype=object)])
    d = np.repeat([1, -2], [300, 120])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pot = TransportClassifier(**SETTINGS, insecure_seed=5).fit(*SOURCE, TARGET[0])
        skada = TransportClassifier(**SETTINGS, insecure_seed=5).fit(X, y, sample_domain=d)
    assert np.array_equal(pot.predict_proba(TARGET[0]), skada.predict_proba(TARGET[0]))


def test_several_sources_each_have_a_ledger():
    other = domain(200, 7, shift=-0.2)
    X = np.concatenate([SOURCE[0], other[0], TARGET[0]])
    y = np.concatenate([SOURCE[1], other[1], np.full(120, "a")]).astype(object)
    y[-120:] = None
    d = np.repeat([1, 2, -1], [300, 200, 120])
    model = TransportClassifier(**SETTINGS).fit(X, y, sample_domain=d)
    assert len(model.releases_) == 2
    assert len({release.receipt.public for release in model.releases_}) == 2
    assert accuracy(model) > 0.95


def test_a_random_projection_serves_any_target():
    settings = SETTINGS | {"epsilon": 8.0, "projection": "random", "norm_bound": 2.0, "n_components": 3}
    model = TransportClassifier(**settings)
    assert accuracy(model.fit(*SOURCE, TARGET[0])) > 0.75
    again = TransportClassifier(**settings)
    again.fit(*SOURCE, TARGET[0] + 0.1)
    assert model.question_ == again.question_
    with pytest.raises(InputError, match="norm_bound"):
        TransportClassifier(**SETTINGS, projection="random").fit(*SOURCE, TARGET[0])


def test_known_target_labels_are_kept_and_help():
    turned = TARGET[0][:, [1, 0, 2]]  # so far that the source alone is misleading
    yt = np.full(120, None, dtype=object)
    for name in CLASSES:
        yt[np.flatnonzero(TARGET[1] == name)[:8]] = name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = TransportClassifier(**SETTINGS, insecure_seed=0).fit(*SOURCE, turned)
        helped = TransportClassifier(**SETTINGS, insecure_seed=0).fit(*SOURCE, turned, yt)
    known = np.array([name is not None for name in yt])
    assert np.array_equal(helped.transduction_[known], yt[known])
    assert accuracy(helped, turned) > accuracy(alone, turned)
    for code, name in enumerate(CLASSES):  # no mass between different labels
        assert np.all(helped.coupling_[code, known & (TARGET[1] != name)] < 1e-12)


def test_a_class_missing_in_the_source_is_no_error():
    few = domain(300, 3, classes=2)
    model = TransportClassifier(**SETTINGS).fit(*few, TARGET[0])
    assert model.predict_proba(TARGET[0]).shape == (120, 3)
    assert np.isfinite(model.predict_proba(TARGET[0])).all()


def test_one_row_a_class_and_a_tiny_target():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        model = TransportClassifier(**SETTINGS).fit(PLACES, np.array(CLASSES), TARGET[0][:2])
    assert set(model.transduction_) <= set(CLASSES)
    one = TransportClassifier(**SETTINGS, features=FeatureMap.random(3, 2, seed=0, radius=2.0))
    assert one.fit(*SOURCE, TARGET[0][:1]).predict(TARGET[0][:1]).shape == (1,)


def test_equal_target_rows_are_named():
    with pytest.raises(InputError, match="differ"):
        TransportClassifier(**SETTINGS).fit(*SOURCE, np.ones((5, 3)))
    features = FeatureMap.random(3, 2, seed=0, radius=2.0)
    model = TransportClassifier(**SETTINGS, features=features).fit(*SOURCE, np.ones((5, 3)))
    assert len(set(model.transduction_)) == 1


@pytest.mark.parametrize(
    ("change", "call", "error", "message"),
    [
        ({"classes": None}, {}, InputError, "Expected classes, the public list"),
        ({"bounds": None}, {}, InputError, "bounds="),
        ({"epsilon": None}, {}, InputError, "epsilon"),
        ({"delta": None}, {}, InputError, "delta"),
        ({"algorithm": "raw"}, {}, InputError, "algorithm"),
        ({"projection": "pca"}, {}, InputError, "projection"),
        ({"relation": "add/remove", "algorithm": "rows"}, {}, InputError, "replace-one"),
        ({"relation": "add/remove", "algorithm": "descent"}, {}, InputError, "replace-one"),
        ({"algorithm": "descent"}, {"yt": np.repeat(["a", "b"], 60)}, InputError, "no target labels"),
        ({"rescale": "log"}, {}, InputError, "rescale"),
        ({}, {"Xt": None}, InputError, "Xt"),
        ({}, {"Xt": np.full((4, 3), np.nan)}, InputError, "target"),
        ({}, {"Xt": np.zeros((4, 2))}, InputError, "target"),
        ({}, {"Xt": np.full((4, 3), np.inf)}, InputError, "target"),
        ({}, {"X": np.full((300, 3), np.nan)}, SchemaError, "missing"),
        ({}, {"X": np.full((300, 3), np.inf)}, SchemaError, "infinit"),
        ({}, {"y": np.full(300, "z")}, SchemaError, "classes"),
        ({}, {"y": SOURCE[1][:5]}, InputError, "one label"),
        ({}, {"yt": np.array(["a"])}, InputError, "yt to have one label"),
    ],
)
def test_bad_input_has_a_name(change, call, error, message):
    arguments = {"X": SOURCE[0], "y": SOURCE[1], "Xt": TARGET[0]} | call
    with pytest.raises(error, match=message):
        TransportClassifier(**SETTINGS | change).fit(**arguments)


def test_out_of_sample_points_are_classified_and_sources_moved():
    model = TransportClassifier(**SETTINGS, algorithm="statistics").fit(*SOURCE, TARGET[0])
    assert accuracy(model, *domain(200, 9, shift=0.4)) > 0.95
    assert model.transform(model.model_.sources).shape == (3, 3)
    assert np.allclose(model.transform(model.model_.sources), model.model_.features.spread(model.mapped_))


def test_distances_grow_with_the_shift_and_the_correction_helps():
    found = [
        private_wasserstein(
            SOURCE[0], TARGET[0] + shift, bounds=(-3, 3), norm_bound=3, n_components=3, epsilon=20, delta=1e-4
        ).distance
        for shift in (0.0, 3.0)
    ]
    assert found[0] < found[1]


def test_minibatch_distances_are_amplified_and_averaged():
    rng = np.random.default_rng(0)
    S, T = rng.normal(0, 0.2, (500, 4)), rng.normal(1, 0.2, (100, 4))
    found = private_wasserstein(
        S, T, bounds=(-2, 2), norm_bound=2, n_components=4, epsilon=8, delta=1e-5, batch_size=50, batches=3
    )
    assert found.batches.shape == (3,)
    assert found.to_dict()["batches"] == 3


@pytest.mark.parametrize("release", ["descent", "statistics", "rows"])
def test_odd_sources_and_targets_are_answered(release):
    """A class without rows, one row a class, fewer target points than classes, equal source rows."""
    settings = SETTINGS | {"epsilon": 8.0, "algorithm": release}
    cases = [
        (domain(300, 3, classes=2), TARGET[0]),
        ((PLACES, np.array(CLASSES)), TARGET[0]),
        (SOURCE, TARGET[0][:2]),
        ((np.ones((300, 3)), SOURCE[1]), TARGET[0]),
    ]
    for source, target in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivadaWarning)
            found = TransportClassifier(**settings).fit(*source, target).predict_proba(target)
        assert found.shape == (len(target), 3)
        assert np.allclose(found.sum(axis=1), 1)


def test_rows_are_not_coupled_with_points_of_another_known_label():
    yt = np.full(120, None, dtype=object)
    for name in CLASSES:
        yt[np.flatnonzero(TARGET[1] == name)[:2]] = name
    model = TransportClassifier(**SETTINGS | {"epsilon": 20.0}, algorithm="rows")
    model.fit(*SOURCE, TARGET[0], yt)
    known = np.array([name is not None for name in yt])
    assert np.array_equal(model.transduction_[known], yt[known])
    reached = (model.coupling_[:, known] > 1e-9).astype(float)  # rows by known points
    same = TARGET[1][known][:, None] == TARGET[1][known]
    assert (reached.T @ reached)[~same].max() == 0  # no row reaches points of two known labels


def test_what_auto_asks_follows_from_settings_alone():
    def kind(yt=None, **changed):
        return TransportClassifier(**SETTINGS | changed).fit(*SOURCE, TARGET[0], yt).question_.kind

    yt = np.full(120, None, dtype=object)
    yt[:3] = "a"
    assert kind() == "transport.linear"
    assert kind(yt) == kind(rescale="root") == kind(relation="add/remove") == "transport.statistics"
    assert kind(features=FeatureMap.random(3, 2, seed=0, radius=2.0)) == "transport.statistics"
    assert kind(projection="random", norm_bound=2.0, n_components=3) == "transport.statistics"


def test_no_public_seed_reaches_the_noise():
    """One random_state, one projection; the noise differs, and in rehearsal it is no stream of that seed."""
    settings = SETTINGS | {"projection": "random", "norm_bound": 2.0, "n_components": 3, "random_state": 11}
    first, second = (TransportClassifier(**settings).fit(*SOURCE, TARGET[0]) for _ in range(2))
    assert first.question_ == second.question_
    assert not np.array_equal(first.release_["sums"], second.release_["sums"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seeded = TransportClassifier(**settings, insecure_seed=11).fit(*SOURCE, TARGET[0])
    scale = float(seeded.release_.noise["sums"]["scale"])
    exact = np.zeros((3, 3))
    np.add.at(exact, np.searchsorted(CLASSES, SOURCE[1]), seeded.question_.features.apply(SOURCE[0]))
    noise = (seeded.release_["sums"] - exact).ravel() / scale
    assert np.abs(noise).max() < 6
    assert np.abs(noise - np.random.default_rng(11).normal(size=9)).max() > 0.1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_moved_sources_can_be_frames(library):
    frames = pytest.importorskip(library)
    model = TransportClassifier(**SETTINGS, algorithm="statistics", insecure_seed=0)
    with pytest.warns(RehearsalWarning):
        model.fit(*SOURCE, TARGET[0])
    sources = model.model_.sources
    plain = model.transform(sources)
    found = model.set_output(transform=library).transform(X=sources)
    assert isinstance(found, frames.DataFrame)
    assert list(found.columns) == [f"transportclassifier{at}" for at in range(plain.shape[1])]
    assert np.array_equal(found, plain)
