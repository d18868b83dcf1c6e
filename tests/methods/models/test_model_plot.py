"""Every fitted model has a picture, whose contents are what was learnt; no private row is in it."""

import warnings

import numpy as np
import pytest

from privada import Category, Number, Schema, _extras
from privada.exceptions import InputError
from privada.methods.cells.estimator import share_intervals
from privada.methods.models.model_plot import MOST_NUMBERS, Flattening, Map, Numbers, draw_model
from privada.methods.pictures import Points
from privada.methods.reweighting import deep
from tests.methods.every_estimator import CASES, CLASSES, NAMES, table

pytest.importorskip("matplotlib")
PUBLIC = table(99, 70)[0]
CASE = dict(zip(NAMES, CASES, strict=True))


def fitted(name, **more):
    case = CASE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.make(**({"epsilon": 2.0} | more)).fit(*case.private(rows=300), **case.public)


@pytest.fixture(autouse=True)
def short_public_fits(monkeypatch):
    monkeypatch.setattr(deep, "PUBLIC_STEPS", 3)


def drawn(figure):
    """All points of a figure, one array each."""
    figure.canvas.draw()
    return [
        np.asarray(each.get_offsets())
        for axes in figure.axes
        for each in axes.collections
        if len(each.get_offsets()) > 1
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_draws_what_it_learnt_and_no_private_row(name, tmp_path):
    model = fitted(name)
    figure = model.plot(PUBLIC)
    figure.savefig(tmp_path / "model.png")
    assert str(model.guarantee_) in figure.get_suptitle()
    private = CASE[name].private(rows=300)[0]
    for points in drawn(figure):
        if points.shape[1] == 2:
            assert not (points[:, None] == private[None]).all(axis=2).any()


def test_cells_show_classes_at_their_places_and_shares_with_intervals():
    model = fitted("CellClassifier")
    places, shares = model.plot(PUBLIC).axes
    assert [text.get_text() for text in places.texts] == list(CLASSES)
    assert [text.get_position() for text in places.texts] == [(0.2, 0.2), (0.8, 0.8)]
    for at, line in enumerate(line for line in shares.lines if line.get_marker() == "o"):
        np.testing.assert_array_equal(line.get_xdata(), model.probabilities_[:, at])
    assert [label.get_text() for label in shares.get_yticklabels()] == ["cell 0", "cell 1"]


def test_share_intervals_hold_every_share_that_the_counts_allow():
    rng = np.random.default_rng(0)
    noisy = rng.integers(-3, 20, size=(50, 3)).astype(float)
    low, high = share_intervals(noisy, 2.0)
    for _ in range(200):
        exact = np.maximum(noisy + rng.uniform(-2, 2, size=noisy.shape), 0)
        total = exact.sum(axis=1, keepdims=True)
        share = np.divide(exact, total, out=np.full_like(exact, 0.5), where=total > 0)
        inside = (low <= share + 1e-12) & (share <= high + 1e-12)
        assert inside[total[:, 0] > 0].all()


def test_chosen_points_are_stars_on_the_target():
    model = fitted("SourceTargetMedoids")
    source, target, chosen = model.plot(PUBLIC).axes[0].collections
    np.testing.assert_array_equal(chosen.get_offsets(), model.cluster_centers_)
    np.testing.assert_array_equal(target.get_offsets(), PUBLIC)
    np.testing.assert_array_equal(source.get_offsets(), model.source_)


def test_weights_are_named_by_features_and_public_models():
    (axes,) = fitted("ReweightedRegressor").plot().axes
    assert [each.get_text() for each in axes.get_yticklabels()] == [
        "feature 0",
        "feature 1",
        "public model 1",
    ]


def test_transport_of_statistics_has_a_before_and_an_after():
    assert len(fitted("TransportClassifier").plot(PUBLIC).axes) == 1
    moved = fitted("TransportClassifier", algorithm="statistics").plot(PUBLIC)
    assert len(moved.axes) == 2
    before, after = moved.axes[1].collections
    assert before.get_offsets().shape == after.get_offsets().shape == (2, 2)


def test_a_summary_shows_owners_and_no_row():
    model = fitted("PrivateSummarizer")
    given, suiting = model.plot().axes
    assert given.lines[0].get_xdata().tolist() == list(model.allocation_.rows.values())
    assert len(suiting.collections) == 1


def test_rows_that_a_schema_describes_are_drawn_encoded():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ward": rng.choice(["a", "b"], 90), "age": rng.uniform(0, 90, 90)})
    schema = Schema(columns=[Category(name="ward", values=("a", "b")), Number(name="age", low=0, high=90)])
    case = CASE["TransportClassifier"]
    labels = np.asarray(CLASSES)[(frame["ward"] == "b").astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.make(schema=schema, bounds=None).fit(frame, labels, frame[:40])
    groups = model.plot(frame[:40]).axes[0].collections
    assert sum(len(each.get_offsets()) for each in groups) == 40


def test_a_network_needs_public_rows_and_an_extra_is_named(monkeypatch):
    pytest.importorskip("torch")
    with pytest.raises(InputError, match="Expected X, public rows"):
        fitted("DeepReweightedClassifier").plot()
    model = fitted("CellMeans")
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"privada\[plot\]"):
        model.plot()


def test_wide_rows_are_drawn_along_their_main_directions():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5)) * [9, 1, 4, 1, 1]
    at = Flattening(rows).apply(rows)
    np.testing.assert_allclose(at.std(axis=0), [9, 4], rtol=0.2)
    assert Flattening(rows[:, :1], ["age"]).names == ("age", "")
    assert Flattening(rows[:, :1]).apply(rows[:, :1])[:, 1].tolist() == [0.0] * 200


def test_names_are_no_mathematics_and_the_largest_of_many_numbers_are_shown(tmp_path):
    points = Points(name="$\\frac", at=np.zeros((2, 2)))
    many = Numbers(title="$", names=[f"${i}" for i in range(90)], values=np.arange(90.0)[:, None])
    figure = draw_model([Map(title="$x", layers=[points], axes=("$", "$")), many], title="$\\bad")
    figure.savefig(tmp_path / "picture.png")
    assert len(figure.axes[1].get_yticklabels()) == MOST_NUMBERS
    assert "largest 30 of 90" in figure.axes[1].get_title(loc="left")
