"""Released rows: their reach, their labels, their order, their sampling."""

from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent

from privada.audit import replay
from privada.exceptions import InputError, RelationError
from privada.methods.transport import FeatureMap, RowRelease
from privada.parties import Rows, Schema
from privada.parties.answering import answer_rows
from privada.parties.schema import Category, Number
from privada.privacy import ZCDP, ApproxDP, Price, PureDP, Unit
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.events import VisiblySampledDpEvent
from privada.privacy.accounting.filters import GRAIN, open_filter

ONE = ApproxDP(epsilon=8.0, delta=1e-5, relation="replace-one")
MAP = FeatureMap.random(4, 3, seed=0, radius=1.3)


def rows_of(n=40, seed=0, y=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    y = rng.integers(2, size=n) if y is None else y
    schema = Schema.of_numbers(bounds=(-1, 1), width=4, size=n, label=Category(name="y", values=(0, 1)))
    return Rows(X, y=y, schema=schema), X, y


@pytest.mark.parametrize(("epsilon", "ratio"), [(1, 7.46), (2, 3.99), (4, 2.16), (8, 1.20)])
def test_record_level_noise_is_that_of_the_specification(epsilon, ratio):
    question = RowRelease(features=MAP, size=40, guarantee=replace(ONE, epsilon=epsilon))
    assert question.plan.draws["rows"].scale / MAP.radius == pytest.approx(ratio, abs=0.005)


@pytest.mark.parametrize(("epsilon", "label", "ratio"), [(8, 2, 0.737), (4, 2, 1.907), (2, 0.5, 2.305)])
def test_labels_and_rows_are_composed_exactly(epsilon, label, ratio):
    """privacy.md, section 3 (c), joint accounting; ten classes."""
    question = RowRelease(
        features=MAP, size=40, n_classes=10, label_epsilon=label, guarantee=replace(ONE, epsilon=epsilon)
    )
    assert question.plan.draws["rows"].scale / (2 * MAP.radius) == pytest.approx(ratio, abs=0.003)


def test_attribute_level_uses_the_actual_row_norm():
    guarantee = replace(ONE, relation="attribute")
    question = RowRelease(features=MAP, size=40, attribute_width=2.0, guarantee=guarantee)
    w = np.linalg.norm(MAP.projection, axis=1).max()
    sigma = 2.0 * w / guarantee.gaussian_mu()
    assert question.plan.draws["rows"].scale == pytest.approx(sigma, rel=1e-6)
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = rng.uniform(-1, 1, size=(2, 4))
        x[1] = x[0]
        j = rng.integers(4)
        x[:, j] = -1, 1
        z = MAP.spread(x)
        assert np.linalg.norm(z[0] - z[1]) <= question.reach


def test_two_clipped_rows_differ_by_at_most_the_diameter():
    rng = np.random.default_rng(0)
    z = MAP.apply(rng.normal(size=(300, 4)) * 10 ** rng.uniform(-3, 6, size=(300, 1)))
    assert np.linalg.norm(z[:, None] - z[None], axis=2).max() <= 2 * MAP.radius


@pytest.mark.statistical
def test_the_order_of_rows_knows_nothing_of_labels(rehearsal):
    """Where the one marked row comes out is uniform whatever its label: false alarm 1e-4."""
    from scipy.stats import chisquare

    n, trials = 8, 800
    wide = FeatureMap(projection=np.eye(4), centre=np.zeros(4), radius=2.0)
    strong = ZCDP(rho=5000.0, relation="replace-one")
    question = RowRelease(features=wide, size=n, n_classes=2, label_epsilon=1.0, guarantee=strong)
    for label in (0, 1):
        y = np.repeat([0, 1], n // 2)
        y[0] = label
        rows, X, _ = rows_of(n, y=y)
        X[:] = 0
        X[0] = 0.9
        rows = Rows(X, y=y, schema=rows.schema)
        places = [
            int(answer_rows(question, rows, noise=rehearsal)["rows"].sum(axis=1).argmax())
            for _ in range(trials)
        ]
        assert chisquare(np.bincount(places, minlength=n)).pvalue > 1e-4


def test_fewer_rows_than_announced_are_filled_with_empty_ones(rehearsal):
    question = RowRelease(features=MAP, size=40, batch_size=10, batches=2, guarantee=ONE)
    for n in (0, 3, 40, 90):
        payload = answer_rows(question, rows_of(max(n, 1))[0] if n else rows_of(1)[0], noise=rehearsal)
        assert {name: value.shape for name, value in payload.items()} == {
            "rows.0": (10, 3),
            "rows.1": (10, 3),
        }


@pytest.mark.parametrize(
    ("sigma", "batches", "epsilon"),
    [(1.0, 200, 2.43), (1.0, 600, 4.49), (1.0, 1200, 6.79), (0.7, 60, 3.33), (0.7, 200, 5.62)],
)
def test_sampling_is_accounted_for_as_the_specification_computed(sigma, batches, epsilon):
    """privacy.md, section 3 (b), the table's column "RO fixed-size PLD"."""
    event = SelfComposedDpEvent(SampledWithoutReplacementDpEvent(4365, 128, GaussianDpEvent(sigma)), batches)
    found = accountant.epsilon(event, 1 / (1.2 * 4365), step=1e-3)
    assert found == pytest.approx(epsilon, abs=0.011)


def test_one_sampled_batch_has_the_closed_profile():
    """n = 2, B = 1 at ε = 1, μ = 1: g δ(log(1 + (e - 1)/g))."""
    event = SampledWithoutReplacementDpEvent(2, 1, GaussianDpEvent(1.0))
    closed = 0.5 * curves.gaussian_delta(np.log1p((np.e - 1) / 0.5), 1.0)
    assert accountant.delta(event, 1.0) == pytest.approx(closed, rel=1e-3)
    assert closed == pytest.approx(0.02887, abs=1e-5)
    assert accountant.renyi(event, 4.0) < accountant.renyi(event.event, 4.0)
    assert accountant.delta(event, 1.0) <= curves.renyi_delta(1.0, 4.0, accountant.renyi(event, 4.0))


def test_minibatches_need_less_noise_than_the_whole_so_often():
    many = RowRelease(features=MAP, size=4000, batch_size=100, batches=20, guarantee=ONE)
    whole = RowRelease(features=MAP, size=4000, batch_size=4000, batches=20, guarantee=ONE)
    assert many.plan.draws["rows.0"].scale < 0.5 * whole.plan.draws["rows.0"].scale
    assert accountant.satisfies(many.price.event, ONE)


def test_sampled_events_are_not_carried_to_another_relation():
    event = SampledWithoutReplacementDpEvent(10, 1, GaussianDpEvent(1.0))
    with pytest.raises(InputError, match="own relation"):
        accountant.widened(event, 2)
    with pytest.raises(InputError, match="sample"):
        accountant.zcdp(SampledWithoutReplacementDpEvent(10, 11, GaussianDpEvent(1.0)))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"guarantee": replace(ONE, relation="add/remove")}, RelationError, "number is public"),
        ({"guarantee": PureDP(epsilon=1, relation="replace-one")}, InputError, "delta"),
        ({"guarantee": replace(ONE, unit=Unit(name="person", max_rows=2))}, InputError, "several rows"),
        ({"n_classes": 3}, InputError, "label_epsilon"),
        ({"batches": 3}, InputError, "batch_size"),
        ({"batch_size": 41}, InputError, "at most 40"),
        ({"attribute_width": 1.0}, InputError, "attribute_width"),
        ({"guarantee": replace(ONE, relation="attribute")}, InputError, "attribute_width"),
        ({"n_classes": 2, "label_epsilon": 9.0}, InputError, "label_epsilon"),
    ],
)
def test_bad_parameters_have_names(change, error, message):
    settings = {"features": MAP, "size": 40, "guarantee": ONE} | change
    with pytest.raises(error, match=message):
        RowRelease(**settings).price


def test_at_attribute_level_a_rescaled_row_is_refused():
    scaled = replace(MAP, rescale="unit")
    with pytest.raises(InputError, match="rescale"):
        RowRelease(
            features=scaled, size=40, attribute_width=1.0, guarantee=replace(ONE, relation="attribute")
        )


def test_a_question_must_fit_its_owner():
    schema = rows_of()[0].schema
    RowRelease(features=MAP, size=40, guarantee=ONE).fits(schema)
    with pytest.raises(InputError, match="size"):
        RowRelease(features=MAP, size=41, guarantee=ONE).fits(schema)
    narrow = RowRelease(
        features=MAP, size=40, attribute_width=1.0, guarantee=replace(ONE, relation="attribute")
    )
    with pytest.raises(InputError, match="attribute_width >= 2"):
        narrow.fits(schema)


def test_nothing_in_a_sampled_answer_tells_who_was_drawn(rehearsal):
    """Amplification needs secret membership: no ids, no seed and no order can be asked for or come out."""
    question = RowRelease(
        features=MAP, size=40, batch_size=4, batches=3, n_classes=2, label_epsilon=1.0, guarantee=ONE
    )
    payload = answer_rows(question, rows_of()[0], noise=rehearsal)
    assert sorted(payload) == sorted(f"{what}.{i}" for what in ("rows", "labels") for i in range(3))
    with pytest.raises(TypeError, match="ids"):
        replace(question, ids=True)
    plain, arrays = question.parts()
    with pytest.raises(TypeError, match="ids"):
        RowRelease.from_parts(plain | {"ids": True}, arrays, guarantee=ONE, salt="")


@pytest.mark.statistical
def test_batches_are_drawn_afresh_and_shuffled(rehearsal):
    """Where a marked row comes out, if it does, is uniform; batches are no partition: false alarm 2e-4."""
    from scipy.stats import binomtest, chisquare

    n, batch, trials = 6, 3, 600
    wide = FeatureMap(projection=np.eye(4), centre=np.zeros(4), radius=2.0)
    question = RowRelease(
        features=wide, size=n, batch_size=batch, batches=2, guarantee=ZCDP(rho=5000.0, relation="replace-one")
    )
    X = np.zeros((n, 4))
    X[0] = 0.9
    rows = Rows(X, y=np.zeros(n, int), schema=rows_of(n)[0].schema)
    places, both = [], 0
    for _ in range(trials):
        payload = answer_rows(question, rows, noise=rehearsal)
        seen = [payload[f"rows.{i}"].sum(axis=1) for i in range(2)]
        places += [int(each.argmax()) for each in seen if each.max() > 1.8]
        both += all(each.max() > 1.8 for each in seen)
    assert chisquare(np.bincount(places, minlength=batch)).pvalue > 1e-4
    assert binomtest(both, trials, 0.25).pvalue > 1e-4


ATTRIBUTE = replace(ONE, relation="attribute")


@pytest.mark.parametrize("far", [1e10, 1e16, 1e100])
def test_a_centre_so_far_that_rounding_moves_more_than_an_attribute_is_refused(far):
    """At 1e16 floats are two apart: an attribute of width 1.5 moved a row by 2, or off the grid."""
    flat = FeatureMap(projection=np.eye(1), centre=np.array([far]), radius=1.0)
    question = RowRelease(features=flat, size=1, attribute_width=1.5, guarantee=ATTRIBUTE)
    with pytest.raises(InputError, match="a centre nearer"):
        question.fits(Schema.of_numbers(bounds=(0, 1.5), width=1, size=1))


@pytest.mark.parametrize("width", [1, 30, 784, 4096])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (-5.0, 250.0)])
def test_ordinary_maps_round_less_than_is_priced(width, bounds):
    schema = Schema.of_numbers(bounds=bounds, width=width, size=2)
    plain = FeatureMap.random(width, 3, seed=0)
    reach = bounds[1] - bounds[0]
    question = RowRelease(features=plain, size=2, attribute_width=reach, guarantee=ATTRIBUTE)
    question.fits(schema)
    assert question.reach == pytest.approx(reach * plain.row_norms().max(), rel=1e-8)
    sides = np.random.default_rng(0).uniform(*bounds, size=(1, width)).repeat(2, axis=0)
    sides[:, plain.row_norms().argmax()] = bounds
    labelled = [Rows(np.vstack([side, sides[0]]), schema=schema) for side in sides]
    found = replay(question, *labelled)
    assert found.passed, found


def test_an_attribute_that_is_several_features_is_refused():
    """A category moves two of them at once: √2 times as far as was priced."""
    hot = FeatureMap(projection=np.eye(2), centre=np.zeros(2), radius=1.0)
    question = RowRelease(features=hot, size=1, attribute_width=1.0, guarantee=ATTRIBUTE)
    schema = Schema(columns=[Category(name="ward", values=("a", "b"))], size=1)
    with pytest.raises(InputError, match="'ward' becomes several"):
        question.fits(schema)
    missing = Schema(columns=[Number(name="age", low=0, high=1, missing=True)], size=1)
    with pytest.raises(InputError, match="'age' becomes several"):
        question.fits(missing)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e140])
def test_row_norms_do_not_leave_the_floats(size):
    steep = FeatureMap(projection=size * np.array([[3.0, 4.0], [0.0, 1.0]]), centre=np.zeros(2), radius=1.0)
    assert steep.row_norms() / size == pytest.approx([5, 1])


def test_batches_at_attribute_level_are_samples_that_show():
    """The noise on an attribute hides that attribute, and the others show whose row it is."""
    settings = {"features": MAP, "size": 958, "batch_size": 128, "batches": 8}
    wanted = ApproxDP(epsilon=4.0, delta=1.04e-4, relation="attribute")
    whole = replace(wanted, relation="replace-one")
    attribute = RowRelease(**settings, attribute_width=1.0, guarantee=wanted)
    rows = RowRelease(**settings, guarantee=whole)
    assert accountant.to_dict(attribute.plan.event)["event"]["type"] == "VisiblySampledDpEvent"
    assert accountant.to_dict(rows.plan.event)["event"]["type"] == "SampledWithoutReplacementDpEvent"
    attribute.check_guarantee()
    rows.check_guarantee()
    assert rows.plan.draws["rows.0"].mu == pytest.approx(1.2175, rel=1e-3)
    assert attribute.plan.draws["rows.0"].mu == pytest.approx(0.6733, rel=1e-3)
    assert open_filter(wanted).cost(attribute.price) > 0


def test_the_default_ledger_charges_batches_at_attribute_level_in_full():
    """At the noise that was claimed to be enough for (4, 1.04e-4): 11.5 was charged, 27.4 is spent."""
    budget = ApproxDP(epsilon=4.0, delta=1 / 9580, relation="attribute")
    keeps = open_filter(budget)
    secret = SelfComposedDpEvent(SampledWithoutReplacementDpEvent(958, 128, GaussianDpEvent(1 / 1.21754)), 8)
    visible = SelfComposedDpEvent(VisiblySampledDpEvent(958, 128, GaussianDpEvent(1 / 1.21754)), 8)
    old, new = (Price(event=event, guarantee=budget) for event in (secret, visible))
    charged, spent = keeps.recorded_cost(old) * GRAIN, keeps.cost(new) * GRAIN
    assert curves.renyi_epsilon(budget.delta, keeps.order, charged) == pytest.approx(11.54, abs=0.02)
    assert curves.renyi_epsilon(budget.delta, keeps.order, spent) == pytest.approx(27.44, abs=0.02)
    with pytest.raises(RelationError):
        keeps.cost(old)


@pytest.mark.statistical
def test_sampling_does_not_amplify_where_the_other_row_is_far_off(rehearsal):
    """n = 2, B = 1, μ = 1, answered by the owner's code: δ(1) is γ δ(1) = 0.0635, not the claimed 0.0288.

    Neighbours differ in the first attribute of the first row; a hundred others tell the two rows apart.
    The estimate's standard error is 0.006.
    """
    flat, batches = FeatureMap(projection=np.eye(101), centre=np.zeros(101), radius=1.0), 1000
    question = RowRelease(
        features=flat,
        size=2,
        batch_size=1,
        batches=batches,
        attribute_width=1.0,
        guarantee=ZCDP(rho=0.5 * batches, relation="attribute"),
    )
    assert question.plan.draws["rows.0"].scale == pytest.approx(1, rel=1e-6)
    assert accountant.delta(question.plan.event.event, 1.0) == pytest.approx(0.0635, abs=1e-4)
    schema = Schema.of_numbers(bounds=(0, 1), width=101, size=2)
    other = np.append(0.0, np.ones(100))

    def share(x):
        """Of batches that show the first row, with its attribute where the likelihoods differ by e."""
        rows = Rows(np.vstack([np.append(x, np.zeros(100)), other]), schema=schema)
        answers = (answer_rows(question, rows, noise=rehearsal).values() for _ in range(10))
        drawn = np.vstack([batch for answer in answers for batch in answer])
        return np.mean((drawn[:, 1:].mean(axis=1) < 0.5) & (drawn[:, 0] > 1.5))

    assert share(1.0) - np.e * share(0.0) > 0.045


@pytest.mark.parametrize("relation", ["replace-one", "attribute"])
def test_labels_far_beyond_the_budget_are_refused_and_not_computed_for_ever(relation):
    width = {"attribute_width": 1.0} if relation == "attribute" else {}
    with pytest.raises(InputError, match="label_epsilon"):
        RowRelease(
            features=MAP,
            size=40,
            batch_size=2,
            batches=3,
            n_classes=2,
            label_epsilon=600.0,
            guarantee=ApproxDP(epsilon=1e-6, delta=1e-9, relation=relation),
            **width,
        ).price
