"""The black box: claims as points and curves; bounds that catch faults; searches."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from privada import CellClassifier
from privada.audit import audit_mechanism, audit_question, audit_samples, audit_search
from privada.audit.blackbox import claims, points
from privada.audit.events import Curve, Point
from privada.exceptions import InputError
from privada.model_selection import PrivateSearchCV
from privada.model_selection import search as searching
from privada.parties.rows import Rows
from privada.parties.schema import Schema
from privada.privacy import ZCDP, ApproxDP, Gaussian, KNorm, Laplace, PureDP, Question, RandomisedResponse
from privada.privacy.accounting import curves
from privada.privacy.mechanism import Plan

ONE = PureDP(epsilon=1.0, relation="add/remove")


def test_claims_become_points():
    assert points(ONE) == (Point(epsilon=1.0, delta=0.0, first=True),)
    approximate = ApproxDP(epsilon=2.0, delta=1e-5, relation="add/remove")
    assert points(approximate) == (Point(epsilon=2.0, delta=1e-5, first=True),)
    zcdp = ZCDP(rho=0.1, relation="add/remove")
    assert all(point.epsilon == pytest.approx(zcdp.epsilon_at(point.delta)) for point in points(zcdp))


def test_a_gaussian_plan_adds_points_of_its_exact_profile():
    plan = Plan(draws={"x": Gaussian.calibrated(sensitivity=1, mu=0.5)})
    charged = points(ApproxDP(epsilon=2.0, delta=1e-5, relation="add/remove"), plan)[1:]
    assert len(charged) == 4
    for point in charged:
        assert point.epsilon == pytest.approx(curves.gaussian_epsilon(point.delta, 0.5), rel=1e-6)


def test_a_plan_of_gaussian_noise_is_tried_on_its_whole_curve_and_others_are_not():
    claimed = ApproxDP(epsilon=2.0, delta=1e-5, relation="add/remove")
    gaussian = claims(claimed, Plan(draws={"x": Gaussian.calibrated(sensitivity=1, mu=0.5)}))
    assert isinstance(gaussian[-1], Curve)
    assert gaussian[-1].mu == pytest.approx(0.5, rel=1e-6)
    mixed = claims(claimed, Plan(draws={"x": Laplace(sensitivity=1, scale=1.0)}))
    assert not any(isinstance(claim, Curve) for claim in mixed)
    assert Point(epsilon=1.0, delta=0.0) in mixed


def test_bounds_are_exact_on_probabilities_that_attain_the_claim():
    from scipy.special import ndtr

    low, high = np.array([0.5]), np.array([(0.5 - 0.1) / np.e])
    assert Point(epsilon=1.0, delta=0.1).bounds(low, high) == pytest.approx(1.0)
    assert Curve(mu=1.0).bounds(ndtr(np.array([1.5])), ndtr(np.array([0.5]))) == pytest.approx(1.0)


def test_bounds_stay_numbers_where_an_event_never_or_always_happens():
    never, always = np.array([0.0]), np.array([1.0])
    for claim in (Point(epsilon=1.0, delta=0.1), Curve(mu=1.0)):
        assert np.isfinite(claim.bounds(never, always)).all()
        assert (claim.bounds(never, always) < 0).all()


PRINTED = PureDP(epsilon=1 / 66, relation="add/remove")  # what paper 001 claims at λ = 66


@pytest.fixture
def rng():
    return np.random.default_rng(2024)


def snapped(noise):
    """Noise on a grid: the last bits of floats would tell more than any proof about real numbers allows."""
    return np.round(noise * 1024) / 1024


def laplace_pair(rng, trials, scale=1.0):
    first, second = snapped(rng.laplace(scale=scale, size=(2, trials)))
    return first, 1 + second


# --- tight on known mechanisms --------------------------------------------------------------------


@pytest.mark.statistical
def test_laplace_bound_is_tight_and_passes(rng):
    """False alarm: 1e-2 for passing; the tightness has some 10 standard errors of room."""
    result = audit_samples(*laplace_pair(rng, 50_000), claimed=ONE)
    assert result.passed
    assert 0.9 < result.epsilon_lower <= 1.0
    assert result.trials == 50_000


@pytest.mark.statistical
def test_joint_laplace_over_coordinates_is_tight_with_exact_values(rng):
    """Eight coordinates of which the record moves four by 1/4 each: false alarm 1e-2."""
    a, b = np.zeros(8), np.repeat([0.0, 0.25], 4)
    first, second = (centre + snapped(rng.laplace(size=(50_000, 8))) for centre in (a, b))
    result = audit_samples(first, second, claimed=ONE, exact=(a, b))
    assert result.passed
    assert result.epsilon_lower > 0.4


@pytest.mark.statistical
def test_gaussian_bound_is_tight_and_passes(rng):
    """μ = 1 at δ = 0.01: passes at the exact ε, fails at 1.2; false alarm 1e-2."""
    exact = curves.gaussian_epsilon(0.01, 1.0)
    claimed = ApproxDP(epsilon=exact, delta=0.01, relation="add/remove")
    first, second = snapped(rng.normal(size=50_000)), 1 + snapped(rng.normal(size=50_000))
    result = audit_samples(first, second, claimed=claimed)
    assert result.passed
    assert result.epsilon_lower > 0.75 * exact
    assert not audit_samples(first, second, claimed=replace(claimed, epsilon=1.2)).passed


@pytest.mark.statistical
def test_zcdp_claims_pass_and_half_the_noise_fails(rng):
    """False alarm: 1e-2."""
    claimed = ZCDP(rho=0.5, relation="add/remove")
    first, second = snapped(rng.normal(size=(2, 20_000)))
    assert audit_samples(first, 1 + second, claimed=claimed).passed
    assert not audit_samples(first, 2 + second, claimed=claimed).passed


# --- honest: coverage -----------------------------------------------------------------------------


def null_pair(rng, trials=800, width=5):
    return rng.normal(size=(trials, width)), rng.normal(size=(trials, width))


@pytest.mark.statistical
def test_the_bound_covers_where_there_is_nothing_to_find(rng):
    """Equal distributions, ε = 0: at 80 % confidence at most 20 % of the bounds exceed it.

    The many statistics tried would be a union of thousands; 100 runs, 35 allowed instead of
    20: false alarm 2e-4 if the coverage were exactly 80 %, and it is far better.
    """
    runs = [audit_samples(*null_pair(rng), claimed=ONE, confidence=0.8) for _ in range(100)]
    assert sum(result.epsilon_lower > 0 for result in runs) <= 35


@pytest.mark.statistical
def test_the_bound_covers_randomised_response(rng):
    """ε = 1 exactly, attained by every event: 200 runs at 80 %, 62 allowed; false alarm 1e-4."""
    keep = math.e / (1 + math.e)
    above, bounds = 0, []
    for _ in range(200):
        first, second = rng.random(400) < keep, rng.random(400) >= keep
        bounds.append(audit_samples(first, second, claimed=ONE, confidence=0.8).epsilon_lower)
        above += bounds[-1] > 1
    assert above <= 62
    assert np.median(bounds) > 0.6


# --- it can fail: the hazards of privacy.md, section 0 and 2 (b) ---------------------------------------


@pytest.mark.statistical
def test_scaling_by_a_private_maximum_is_caught(rng):
    """Hazard 1: 200 points at 0.5 and one of norm 50; "ε = 1" is 49.75. Misses with probability < 1e-9."""

    def scaled_sum(points):
        scaled = 0.5 * points / np.abs(points).max()
        return np.array([len(points), scaled.sum()]) + rng.laplace(scale=2.0, size=2)

    data = np.full(200, 0.5)
    options = {"claimed": ONE, "trials": 4000, "resolution": 2**-10}
    result = audit_mechanism(scaled_sum, data, np.append(data, 50.0), **options)
    assert not result.passed
    assert result.epsilon_lower > 5
    assert audit_mechanism(scaled_sum, data, np.append(data, 0.5), **options).passed


@pytest.mark.statistical
def test_noising_only_cells_that_are_not_empty_is_caught(rng):
    """Hazard 6: NNA with d = 8 and γ = 0.1 emits a centre with probability 0.193, or never."""
    scale, threshold = math.sqrt(8) + 1, 1 + math.log((math.sqrt(8) + 1) / 0.1)

    def emitted(points):
        if not len(points):
            return np.full(8, np.nan)
        count, total = (exact + rng.laplace(scale=scale, size=np.shape(exact)) for exact in (1.0, points[0]))
        return total / count if count >= threshold else np.full(8, np.nan)

    pair = np.zeros((0, 8)), np.full((1, 8), 0.1)
    options = {"trials": 4000, "resolution": 2**-10}
    result = audit_mechanism(emitted, *pair, claimed=ONE, **options)
    assert not result.passed
    assert result.epsilon_lower > 3
    for delta, passes in ((0.05, False), (0.25, True)):
        claimed = ApproxDP(epsilon=1.0, delta=delta, relation="add/remove")
        assert audit_mechanism(emitted, *pair, claimed=claimed, **options).passed is passes


@pytest.mark.statistical
def test_the_printed_ratio_with_an_exact_denominator_is_caught(rng):
    """Paper 001 at λ = 66, one record and then two: claimed 1/66, true log 2 + 1/132 = 0.7007."""
    noise = rng.laplace(scale=66.0, size=(2, 100_000))
    one, two = np.clip(1 + noise[0], 0, 1), np.clip((1 + noise[1]) / 2, 0, 1)
    result = audit_samples(one, two, claimed=PRINTED, resolution=2**-10)
    assert not result.passed
    assert 0.3 < result.epsilon_lower <= math.log(2) + 1 / 132


@pytest.mark.statistical
def test_an_empty_bin_that_answers_nan_is_caught(rng):
    """Paper 001, N = 0: 0/0."""

    def ratio(errors):
        if not errors:
            return np.nan
        return np.clip((sum(errors) + rng.laplace(scale=66.0)) / len(errors), 0, 1)

    result = audit_mechanism(ratio, [], [1], claimed=PRINTED, trials=2000, resolution=2**-10)
    assert result.epsilon_lower > 4


@pytest.mark.statistical
def test_discrete_noise_over_an_exact_denominator_is_caught(rng):
    """Multiples of 1/373 and of 1/374 hardly meet: the denominator is released."""
    noise = np.rint(rng.laplace(scale=66.0, size=(2, 20_000)))
    first, second = (np.clip((100 + z) / n, 0, 1) for z, n in zip(noise, (373, 374), strict=True))
    assert audit_samples(first, second, claimed=PRINTED).epsilon_lower > 2


@pytest.mark.statistical
def test_noise_for_add_remove_is_caught_under_replace_one(rng):
    """A histogram with scale 1/ε: sound under add/remove (passes), 2ε under replace-one (caught)."""

    def histogram(cells):
        return np.bincount(cells, minlength=3) + snapped(rng.laplace(size=3))

    assert audit_mechanism(histogram, [0, 1], [0, 1, 2], claimed=ONE).passed
    result = audit_mechanism(histogram, [0, 1, 1], [0, 1, 2], claimed=replace(ONE, relation="replace-one"))
    assert not result.passed
    assert result.epsilon_lower > 1.5


@pytest.mark.statistical
def test_the_last_bits_of_float_noise_are_caught(rng):
    """Hazard 5 (Mironov 2012): 1 + Laplace has fewer bits below 1 than Laplace; rounded, it passes."""
    first, second = rng.laplace(size=20_000), 1 + rng.laplace(size=20_000)
    assert not audit_samples(first, second, claimed=ONE).passed
    assert audit_samples(first, second, claimed=ONE, resolution=2**-10).passed


@pytest.mark.statistical
def test_half_the_noise_is_caught(rng):
    result = audit_samples(*laplace_pair(rng, 20_000, scale=0.5), claimed=ONE)
    assert not result.passed
    assert result.epsilon_lower > 1.7


@pytest.mark.statistical
def test_a_shape_that_depends_on_the_rows_is_caught(rng):
    result = audit_mechanism(lambda rows: rng.laplace(size=len(rows)), [1], [1, 2], claimed=ONE, trials=1000)
    assert not result.passed


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Asked(Question):
    draws: dict
    kind = "toy.asked"
    answered_by = f"{__name__}:count_twice"

    def planned(self):
        return Plan(draws=self.draws)

    def parts(self):
        return {}, {}

    @classmethod
    def from_parts(cls, plain, arrays, *, guarantee, salt):
        raise NotImplementedError


class AskedAdaptively(Asked):
    answered_by = f"{__name__}:count_adaptively"


class AskedByRow(Asked):
    answered_by = f"{__name__}:respond"


class AskedForSum(Asked):
    answered_by = f"{__name__}:sum_rows"


def _total(rows):
    return np.array([sum(len(batch) for batch in rows.batches())])


def count_twice(question, rows, draw):
    return {name: draw(name, question.plan.draws[name].place(_total(rows))) for name in ("a", "b")}


def count_adaptively(question, rows, draw):
    first = draw("a", _total(rows))
    sign = 1 if first[0] > 2 else -1
    return {"a": first, "b": draw("b", sign * _total(rows))}


def respond(question, rows, draw):
    codes = np.concatenate([(batch.X[:, 0] > 0.5).astype(int) for batch in rows.batches()])
    return {"a": draw("a", codes)}


def sum_rows(question, rows, draw):
    return {"a": draw("a", sum(batch.X.sum(axis=0) for batch in rows.batches()))}


def rows_of(*values):
    return Rows(np.array(values, dtype=float)[:, None], schema=Schema.of_numbers(bounds=(0, 1), width=1))


def half_each(scale=2.0):
    return {name: Laplace(sensitivity=1, scale=scale) for name in ("a", "b")}


@pytest.mark.statistical
def test_questions_are_drawn_many_at_once(rehearsal):
    """Two counts of ε = 1/2 each: 0.7 < bound <= 1; false alarm 1e-2."""
    pair = rows_of(0.1), rows_of(0.1, 1)
    result = audit_question(Asked(guarantee=ONE, draws=half_each()), *pair, noise=rehearsal)
    assert result.passed
    assert result.epsilon_lower > 0.7
    halved = Asked(guarantee=ONE, draws=half_each(1.0))
    assert not audit_question(halved, *pair, noise=rehearsal).passed


@pytest.mark.statistical
def test_adaptive_questions_are_answered_one_by_one(rehearsal):
    """Later draws depend on earlier outputs, so copies cannot be drawn at once; false alarm 1e-2."""
    asked = AskedAdaptively(guarantee=ONE, draws=half_each())
    result = audit_question(asked, rows_of(0.1), rows_of(0.1, 1), noise=rehearsal, trials=1200)
    assert result.passed
    assert result.epsilon_lower > 0.2
    halved = AskedAdaptively(guarantee=ONE, draws=half_each(0.5))
    assert not audit_question(halved, rows_of(0.1), rows_of(0.1, 1), noise=rehearsal, trials=1200).passed


@pytest.mark.statistical
def test_randomised_response_is_audited(rehearsal):
    """ε = 1, row by row, tight; false alarm 1e-2."""
    claimed = replace(ONE, relation="replace-one")
    asked = AskedByRow(guarantee=claimed, draws={"a": RandomisedResponse(budget=1.0, n_classes=2)})
    result = audit_question(asked, rows_of(0, 0, 1), rows_of(0, 1, 1), noise=rehearsal)
    assert result.passed
    assert result.epsilon_lower > 0.85
    loose = AskedByRow(guarantee=claimed, draws={"a": RandomisedResponse(budget=1.5, n_classes=2)})
    assert not audit_question(loose, rows_of(0, 0, 1), rows_of(0, 1, 1), noise=rehearsal).passed


@pytest.mark.statistical
def test_mechanisms_on_whole_vectors_are_answered_one_by_one(rehearsal):
    """K-norm noise; false alarm 1e-2."""
    asked = AskedForSum(guarantee=ONE, draws={"a": KNorm(budget=1.0, sensitivity=1.0)})
    result = audit_question(asked, rows_of(0.0), rows_of(0.0, 1.0), noise=rehearsal, trials=1200)
    assert result.passed
    assert result.epsilon_lower > 0.4


@pytest.mark.statistical
def test_a_gaussian_question_with_half_its_noise_is_caught_at_a_larger_delta(rehearsal):
    """At δ = 1e-5 alone 20,000 trials would not show it; the charged profile does."""
    claimed = ApproxDP(epsilon=1.0, delta=1e-5, relation="add/remove")
    sound = Gaussian.calibrated(sensitivity=1, mu=curves.gaussian_mu(epsilon=1.0, delta=1e-5), whole=True)

    class Halved(Gaussian):
        def _integers(self, shape, noise):
            return noise.discrete_gaussian(self.steps / 2, shape)

    assert audit_gaussian(sound, claimed, rehearsal).passed
    half = Halved(sensitivity=sound.sensitivity, scale=sound.scale, grid=sound.grid)
    result = audit_gaussian(half, claimed, rehearsal)
    assert not result.passed
    assert result.delta > 1e-5


def audit_gaussian(mechanism, claimed, noise):
    plan = {"a": mechanism, "b": replace(mechanism, scale=1000 * mechanism.scale)}
    return audit_question(Asked(guarantee=claimed, draws=plan), rows_of(0.1), rows_of(0.1, 1), noise=noise)


# --- the result -----------------------------------------------------------------------------------


def test_result_is_frozen_printable_and_plain(rng):
    result = audit_samples(*laplace_pair(rng, 1000), claimed=ONE)
    with pytest.raises(AttributeError):
        result.epsilon_lower = 0.0
    assert "with 99 % confidence" in str(result)
    assert str(ONE) in str(result)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["passed"] is True
    assert set(plain) >= {"epsilon_lower", "confidence", "trials", "statistic", "threshold", "direction"}


def test_bad_parameters_are_named(rng):
    with pytest.raises(InputError, match="confidence"):
        audit_samples(*laplace_pair(rng, 200), claimed=ONE, confidence=1.0)
    with pytest.raises(InputError, match="trials"):
        audit_mechanism(len, [], [], claimed=ONE, trials=3)
    with pytest.raises(InputError, match="as many outcomes"):
        audit_samples(np.zeros(200), np.zeros(300), claimed=ONE)


def test_infinite_outcomes_do_not_stop_an_audit(rng):
    first, second = laplace_pair(rng, 400)
    first[rng.random(400) < 0.5] = np.inf
    assert not audit_samples(first, second, claimed=ONE).passed


CENTERS = [[[0.5]], [[0.2], [0.8]]]
pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")


def make(choice, *, epsilon, selection_epsilon, runs=2):
    model = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=epsilon)
    return PrivateSearchCV(
        model,
        {"centers": CENTERS},
        selection_epsilon=selection_epsilon,
        choice=choice,
        runs=runs,
        held_out=0.5,
    )


X = np.array([[0.1]] + [[0.15]] * 3 + [[0.85]] * 4)  # of eight rows; the odd one is the first
Y = np.repeat([0, 1], 4)


def hold_out_by_place(self, X, person, fit):
    """Which rows were held out until 0.2: those in places that public randomness drew."""
    units = len(X) if person is None else len(np.unique(person))
    return np.random.default_rng(0).permutation(units) < np.ceil(self.held_out * units)


def sorted_neighbours(size=400):
    """Two files, sorted by their first column, of which one has a first row and the other a last one instead.

    All rows between are in the place before. Their labels are such that by the old rule no row of label 1 is
    held out of the first file.
    """
    held = np.random.default_rng(0).permutation(size) < np.ceil(0.5 * size)
    rank, y = np.linspace(0.01, 0.99, size)[:, None], (~held).astype(int)
    first = np.hstack([rank, np.full((size, 1), 0.5)]), y
    second = np.vstack([first[0][1:], [[1.0, 0.5]]]), np.append(y[1:], y[0])
    return first, second


def make_replaced(choice, epsilon=0.25):
    model = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=epsilon, relation="replace-one", size=200)
    centers = [[[0.5, 0.5]], [[0.5, 0.4], [0.5, 0.6]]]
    return PrivateSearchCV(
        model, {"centers": centers}, selection_epsilon=epsilon, choice=choice, runs=2, held_out=0.5
    )


@pytest.mark.statistical
@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_a_search_keeps_its_price(choice):
    search = make(choice, epsilon=2.0, selection_epsilon=2.0)
    found = audit_search(search, (X, Y), (X[1:], Y[1:]), trials=100)
    assert found.passed, str(found)
    assert found.epsilon_claimed == {"exponential": 4.0, "random stopping": 6.0}[choice]


@pytest.mark.statistical
@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_a_search_of_a_sorted_file_keeps_its_price_under_replace_one(choice):
    search = make_replaced(choice)
    found = audit_search(search, *sorted_neighbours(), trials=100)
    assert found.passed, str(found)
    assert found.epsilon_claimed == {"exponential": 0.5, "random stopping": 0.75}[choice]


@pytest.mark.statistical
@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_rows_that_are_held_out_by_their_place_are_caught(monkeypatch, choice):
    monkeypatch.setattr(searching.PrivateSearchCV, "_hold_out", hold_out_by_place)
    found = audit_search(make_replaced(choice), *sorted_neighbours(), trials=100)
    assert not found.passed, str(found)
    assert found.epsilon_lower > 2 * found.epsilon_claimed


@pytest.mark.statistical
def test_runs_that_cost_more_than_is_charged_are_caught(monkeypatch):
    uncharged = searching._clone_uncharged
    monkeypatch.setattr(
        searching, "_clone_uncharged", lambda model: uncharged(model).set_params(epsilon=30.0)
    )
    search = make("random stopping", epsilon=0.1, selection_epsilon=0.1, runs=1)
    search.set_params(held_out=0.01)  # else the secret division hides the odd row well enough
    found = audit_search(search, (X, Y), (X[1:], Y[1:]), trials=100)
    assert not found.passed, str(found)
    assert found.epsilon_lower > 3 * found.epsilon_claimed


@pytest.mark.statistical
def test_rows_that_decide_where_others_go_are_caught(monkeypatch):
    """An error that somebody could make: one row more, and all others change sides."""

    def by_number(self, X, person, fit):
        return (np.arange(len(X)) < len(X) // 2) == (len(X) % 2 == 0)

    monkeypatch.setattr(searching.PrivateSearchCV, "_hold_out", by_number)
    X = np.vstack([np.full((150, 1), 0.1), np.full((150, 1), 0.9)])
    y = np.repeat([0, 1], 150)
    search = make("exponential", epsilon=0.1, selection_epsilon=0.1)
    found = audit_search(search, (X, y), (X[1:], y[1:]), trials=100)
    assert not found.passed, str(found)


def test_a_search_on_public_rows_has_nothing_to_lose():
    rows = np.zeros((2, 1)), [0, 1]
    search = PrivateSearchCV(CellClassifier(classes=(0, 1)), {"centers": CENTERS}, public=rows)
    with pytest.raises(InputError, match="loses nothing"):
        audit_search(search, rows, (rows[0][:1], [0]))
