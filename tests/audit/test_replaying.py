"""The replay auditor: silent on sound answers, and able to name what is wrong with others."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from privada.audit import Sample, across_batches, neighbours, replay, replay_chain
from privada.audit.replaying import Check, keeps, loss, move
from privada.exceptions import InputError
from privada.parties.schema import Category, Schema
from privada.privacy import (
    ZCDP,
    ApproxDP,
    Exponential,
    Gaussian,
    Grid,
    KNorm,
    Laplace,
    PureDP,
    Question,
    RandomisedResponse,
)
from privada.privacy.mechanism import KNormCylinder, Mechanism, Plan

ONE = PureDP(epsilon=1.0, relation="add/remove")
CENTERS = np.array([[0.0], [1.0]])
COARSE = Grid(-2)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Toy(Question):
    draws: dict = field(default_factory=lambda: {"counts": Laplace(sensitivity=1, scale=1.0)})
    event: object = None
    epsilon: float | None = None
    kind = "toy.toy"

    def planned(self):
        return Plan(draws=self.draws, event=self.event, epsilon=self.epsilon)

    def parts(self):
        return {}, {}

    @classmethod
    def from_parts(cls, plain, arrays, *, guarantee, salt):
        raise NotImplementedError


def asking(answer, *, guarantee=ONE, **fields):
    """A question that ``answer`` answers."""
    made = type("Asked", (Toy,), {"answered_by": f"{__name__}:{answer.__name__}"})
    return made(guarantee=guarantee, **fields)


def sample(values=(0.1, 0.5, 0.5, 0.9), bounds=(0, 1)):
    schema = Schema.of_numbers(bounds=bounds, width=1, label=Category(name="y", values=(0, 1)))
    return Sample.of(np.array(values)[:, None], schema=schema, y=np.zeros(len(values), dtype=int))


def replays(question, start=None):
    """Replay on all neighbours of a sample."""
    start = sample() if start is None else start
    pairs = neighbours(start, relation=question.guarantee.relation, rng=np.random.default_rng(0))
    return [replay(question, pair.sample.rows(), pair.neighbour.rows(), pair=pair.name) for pair in pairs]


def violations(question, start=None):
    return [text for result in replays(question, start) for text in result.violations]


def features(rows):
    parts = [batch.X for batch in rows.batches()]
    return np.vstack(parts) if parts else np.zeros((0, 1))


def cells(X):
    """The nearest centre of each row, the first on ties."""
    return np.argmin(np.abs(X - CENTERS.T), axis=1)


# --- sound answers ----------------------------------------------------------------------------------


def count(question, rows, draw):
    return {"counts": draw("counts", np.bincount(cells(features(rows)), minlength=2))}


def truncated_sum(question, rows, draw):
    return {"sum": draw("sum", COARSE.truncate(features(rows)).sum(axis=0))}


def adaptive(question, rows, draw):
    """The second statistic is about the half line that the first answer points to."""
    X = features(rows)[:, 0]
    first = draw("first", np.array([len(X)]))
    return {"second": draw("second", np.array([np.sum(first[0] % 1 / 2 < X)]))}


def test_a_sound_count_passes_and_its_proof_is_tight():
    results = replays(asking(count))
    assert all(result.passed for result in results)
    assert max(result.share for result in results) == pytest.approx(1.0, abs=0.2)
    assert results[0].draws == (Check(name="counts", used=1.0, allowed=1.0),)


def test_an_adaptive_answer_is_compared_after_the_same_past():
    draws = {name: Laplace(sensitivity=1, scale=2.0) for name in ("first", "second")}
    assert not violations(asking(adaptive, draws=draws))


def test_gaussian_draws_are_checked_in_their_norm():
    both = {name: Gaussian.calibrated(sensitivity=1, mu=0.1, grid=Grid(0)) for name in ("first", "second")}
    assert not violations(asking(adaptive, draws=both, guarantee=ZCDP(rho=0.01, relation="add/remove")))


# --- rounding and ties (hazards 5, 8 and 10) --------------------------------------------------------


def rounded_sum(question, rows, draw):
    return {"sum": draw("sum", np.rint(features(rows) / COARSE.step).astype(int).sum(axis=0))}


def ties_by_place(question, rows, draw):
    """Rows at equal distance go left or right by their place in the batch."""
    X = features(rows)
    right = (X[:, 0] > 0.5) | ((X[:, 0] == 0.5) & (np.arange(len(X)) % 2 == 1))
    return {"counts": draw("counts", np.bincount(right.astype(int), minlength=2))}


def first_of_batch(question, rows, draw):
    """The first row of each batch is treated differently from all others, as some kernels do."""
    counts = np.zeros(2, dtype=int)
    for batch in rows.batches():
        at = cells(batch.X)
        at[0] = 1 - at[0]
        counts += np.bincount(at, minlength=2)
    return {"counts": draw("counts", counts)}


def test_rounding_to_nearest_is_caught_and_truncation_is_not():
    """Hazard 5: 0.9 lies within the bound 0.9 and is rounded to 1.0."""
    start = sample(bounds=(-0.9, 0.9))
    draws = {"sum": Laplace.calibrated(sensitivity=0.9, epsilon=1, grid=COARSE)}
    assert not violations(asking(truncated_sum, draws=draws), start)
    assert "sum: 1 of 0.9 allowed" in violations(asking(rounded_sum, draws=draws), start)


def test_truncation_alone_is_not_enough_for_differences():
    """Hazard 5 under replace-one: 0.2 and 0.25 differ by 0.05, their truncations by a whole step of 0.25."""
    start, claimed = sample(bounds=(0.2, 0.25)), PureDP(epsilon=1.0, relation="replace-one")
    narrow = {"sum": Laplace(sensitivity=0.05, scale=0.25, grid=COARSE)}
    found = violations(asking(truncated_sum, draws=narrow, guarantee=claimed), start)
    assert "sum: 0.25 of 0.05 allowed" in found
    slack = {"sum": Laplace(sensitivity=0.05 + COARSE.step, scale=0.3, grid=COARSE)}
    assert not violations(asking(truncated_sum, draws=slack, guarantee=claimed), start)


def test_ties_that_depend_on_a_rows_place_are_caught():
    """Hazards 8 and 10: a first row shifts every tie."""
    assert any(text.startswith("counts: ") for text in violations(asking(ties_by_place), sample((0.5,) * 3)))
    assert not violations(asking(ties_by_place), sample((0.1, 0.2, 0.8, 0.9)))


def test_an_assignment_that_depends_on_the_batch_is_caught():
    pair = across_batches(sample((0.1, 0.9)), relation="add/remove")
    large = asking(first_of_batch), pair.sample.rows(), pair.neighbour.rows()
    assert not replay(*large).passed
    assert replay(asking(count), *large[1:]).passed


# --- bounds -----------------------------------------------------------------------------------------


def unclipped_sum(question, rows, draw):
    """Undoes the schema's clipping: what a forgotten clip does."""
    raw = rows._source.column("x0")
    return {"sum": draw("sum", COARSE.truncate(raw.sum(keepdims=True)))}


def scaled_sum(question, rows, draw):
    X = features(rows)
    return {"sum": draw("sum", COARSE.truncate(X / max(np.abs(X).max(initial=0), 1e-9)).sum(axis=0))}


def test_an_outlier_that_is_not_clipped_is_caught():
    draws = {"sum": Laplace.calibrated(sensitivity=1, epsilon=1, grid=COARSE)}
    found = [r for r in replays(asking(unclipped_sum, draws=draws)) if not r.passed]
    assert "add a far outlier" in {result.pair for result in found}
    assert not violations(asking(truncated_sum, draws=draws))


def test_scaling_by_a_private_maximum_is_caught():
    """Hazard 1."""
    draws = {"sum": Laplace.calibrated(sensitivity=1, epsilon=1, grid=COARSE)}
    assert any("sum: " in text for text in violations(asking(scaled_sum, draws=draws), sample((0.01,) * 50)))


def test_a_sensitivity_for_add_remove_is_caught_under_replace_one():
    claimed = PureDP(epsilon=1.0, relation="replace-one")
    assert "counts: 2 of 1 allowed" in violations(asking(count, guarantee=claimed))
    sound = {"counts": Laplace(sensitivity=2, scale=2.0)}
    assert not violations(asking(count, guarantee=claimed, draws=sound))


# --- what else can leak -----------------------------------------------------------------------------


def only_full_cells(question, rows, draw):
    counts = np.bincount(cells(features(rows)), minlength=2)
    return {"counts": draw("counts", counts[counts > 0])}


def beside_the_draw(question, rows, draw):
    return count(question, rows, draw) | {"n": len(features(rows))}


def fails_on_outliers(question, rows, draw):
    if (features(rows) == 1.0).any():
        raise ValueError("the row 1.0 is at the bound")
    return count(question, rows, draw)


def skips_when_empty(question, rows, draw):
    first = draw("a", np.array([len(features(rows))]))
    order = ("b", "c") if len(features(rows)) > 4 else ("c", "b")
    return {"a": first} | {name: draw(name, np.array([0])) for name in order}


def test_noising_only_cells_that_are_not_empty_is_caught():
    """Hazard 6."""
    assert "counts: shape or type depends on the rows" in violations(asking(only_full_cells), sample((0.1,)))


def test_what_is_released_beside_the_draws_is_caught():
    found = violations(asking(beside_the_draw))
    assert set(found) == {"payload 'n': depends on the rows beside the draws"}


def test_a_failure_that_depends_on_the_rows_is_caught_without_its_message():
    found = violations(asking(fails_on_outliers))
    assert "the answer fails on some rows (ValueError)" in found
    assert not any("1.0" in text for text in found)


def test_an_order_that_depends_on_the_rows_is_caught():
    draws = {name: Laplace(sensitivity=1, scale=3.0) for name in "abc"}
    assert "the draws differ in number or order" in violations(asking(skips_when_empty, draws=draws))


# --- accounting -------------------------------------------------------------------------------------


def twice(question, rows, draw):
    total = np.array([len(features(rows))])
    return {name: draw(name, question.plan.draws[name].place(total)) for name in ("a", "b")}


def test_a_plan_that_counts_one_of_two_draws_is_caught():
    mechanism = Laplace(sensitivity=1, scale=1.0)
    cheap = asking(twice, draws={"a": mechanism, "b": mechanism}, event=mechanism.event, epsilon=1.0)
    assert "all draws, epsilon: 2 of 1 allowed" in violations(cheap)
    half = Laplace(sensitivity=1, scale=2.0)
    assert not violations(asking(twice, draws={"a": half, "b": half}))


def test_a_gaussian_plan_that_counts_one_of_two_draws_is_caught():
    mechanism = Gaussian.calibrated(sensitivity=1, mu=0.5, whole=True)
    claimed = ZCDP(rho=0.125, relation="add/remove")
    cheap = asking(twice, draws={"a": mechanism, "b": mechanism}, event=mechanism.event, guarantee=claimed)
    assert any("all draws, μ²" in text for text in violations(cheap))


def test_laplace_and_gaussian_together_are_checked_as_zcdp():
    draws = {
        "a": Laplace(sensitivity=1, scale=2.0),
        "b": Gaussian.calibrated(sensitivity=1, mu=0.5, whole=True),
    }
    claimed = ZCDP(rho=0.3, relation="add/remove")
    assert not violations(asking(twice, draws=draws, guarantee=claimed))
    cheap = asking(twice, draws=draws, guarantee=claimed, event=draws["b"].event)
    assert any("all draws, ρ" in text for text in violations(cheap))


def test_half_the_noise_does_not_keep_the_guarantee():
    half = asking(count, draws={"counts": Laplace(sensitivity=1, scale=0.5)})
    assert "the plan does not keep ε = 1 (pure), add/remove one row" in violations(half)


@pytest.mark.parametrize(
    ("guarantee", "kept"),
    [
        (PureDP(epsilon=0.5, relation="add/remove"), True),
        (PureDP(epsilon=0.49, relation="add/remove"), False),
        (ZCDP(rho=0.125, relation="add/remove"), True),
        (ZCDP(rho=0.05, relation="add/remove"), False),
        (ApproxDP(epsilon=0.5, delta=1e-9, relation="add/remove"), True),
        (ApproxDP(epsilon=0.3, delta=1e-9, relation="add/remove"), False),
    ],
)
def test_plans_keep_guarantees(guarantee, kept):
    assert keeps(Plan(draws={"x": Laplace(sensitivity=1, scale=2.0)}), guarantee) is kept


# --- moves ------------------------------------------------------------------------------------------


def test_moves_are_in_the_units_of_the_sensitivity():
    before, after = np.zeros((2, 2)), np.array([[3.0, 0.0], [0.0, 4.0]])
    steps = before.astype(int), after.astype(int)
    assert move(Laplace(sensitivity=1, scale=1, grid=COARSE), *steps) == 7 / 4
    assert move(Gaussian(sensitivity=1, scale=9, grid=COARSE), *steps) == 5 / 4
    assert move(KNorm(sensitivity=1, budget=1), before, after) == 5
    assert move(KNormCylinder(sensitivity=0.5, budget=1), before, after) == 3 * 0.5 + 4
    assert move(Exponential(sensitivity=1, budget=1), before[0], after[1]) == 4
    assert move(RandomisedResponse(budget=1, n_classes=5), *(side[:, 1] for side in steps)) == 1


def test_losses_are_what_a_move_costs():
    assert loss(Laplace(sensitivity=1, scale=4.0), 1.0) == 0.25
    assert loss(KNorm(sensitivity=2, budget=1.0), 1.0) == 0.5
    assert loss(Exponential(sensitivity=2, budget=1.0), 3.0) == 1.5
    assert loss(RandomisedResponse(budget=0.5, n_classes=2), 2.0) == 1.0


def test_an_unknown_mechanism_is_named():
    class Odd(Mechanism):
        family, norm = "odd", 0
        event = draw = half_width = None

    with pytest.raises(InputError, match="does not know Odd"):
        move(Odd(sensitivity=1), np.zeros(1), np.zeros(1))


def test_result_is_plain_and_shows_no_row():
    claimed = PureDP(epsilon=1.0, relation="replace-one")
    results = replays(asking(count, guarantee=claimed), sample((0.123456,)))
    result = next(result for result in results if not result.passed)
    assert not json.loads(json.dumps(result.to_dict()))["passed"]
    assert "0.123" not in str(result) + repr(result)
    assert "FAILED on '" in str(result)


def count_more_from_five(question, rows, draw):
    number = sum(len(batch) for batch in rows.batches())
    return {"counts": draw("counts", np.array([number + 2 * (number >= 5)]))}


def fail_from_five(question, rows, draw):
    if sum(len(batch) for batch in rows.batches()) >= 5:
        raise ValueError("0.5 is a row")
    return {"counts": draw("counts", np.array([1]))}


def chain():
    return [sample((0.5,) * number).rows() for number in range(1, 9)]


def test_a_chain_names_the_step_at_which_a_bound_breaks():
    results = replay_chain(asking(count_more_from_five), chain(), pair="rows")
    assert len(results) == 7
    assert [result.pair for result in results if not result.passed] == ["rows, step 4"]
    assert "counts: 3 of 1 allowed" in results[3].violations


def test_a_chain_on_which_an_answer_fails_is_a_violation_without_a_row():
    (result,) = replay_chain(asking(fail_from_five), chain(), pair="rows")
    assert not result.passed
    assert "0.5" not in str(result)
