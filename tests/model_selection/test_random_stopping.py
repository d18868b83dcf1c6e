"""The best of a random number of private runs costs three runs; audits bound both choices from below."""

import math

import numpy as np
import pytest

from privada import ApproxDP, Category, CellStatistics, NearestCells, PureDP, Schema
from privada.audit import audit_mechanism, audit_question
from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Constant
from privada.methods.marginals import HypothesisChoice
from privada.methods.marginals.questions import OutcomeTables
from privada.model_selection.random_stopping import (
    FACTOR,
    RandomStopping,
    best_of_random_runs,
    default_runs,
    keep_search,
)
from privada.parties.answering import answer_rows
from privada.parties.rows import Rows
from privada.privacy.noise import Rehearsal

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
EPSILON = 0.5
UP, DOWN = math.exp(EPSILON), math.exp(-EPSILON)
# laws of one run, ε-private, on two neighbours: probabilities of the scores 0, 1 and 2
LAWS = {"D": (0.5, 0.3, 0.2), "D'": (1 - 0.3 * DOWN - 0.2 * UP, 0.3 * DOWN, 0.2 * UP)}


def run(law):
    low, middle, _ = LAWS[law]

    def once(noise):
        uniform = int(noise.words(1)[0]) * 2.0**-64
        score = int(uniform >= low) + int(uniform >= low + middle)
        return score, score

    return once


@pytest.fixture
def stop_randomly():
    noise = Rehearsal(0)
    return lambda law: best_of_random_runs(run(law), runs=20, noise=noise)


@pytest.fixture
def best_of_ten():
    noise = Rehearsal(0)
    return lambda law: max(run(law)(noise)[0] for _ in range(10))


CELL = NearestCells(centers=[[0.0]])
FITTED = [0, 0, 1]


def claim(epsilon, relation="add/remove"):
    return PureDP(epsilon=epsilon, relation=relation)


def rows(labels):
    label = Category(name="label", values=(0, 1))
    schema = Schema.of_numbers(bounds=(0, 1), width=1, size=len(labels), label=label)
    return Rows(np.zeros((len(labels), 1)), y=np.array(labels), schema=schema)


def test_one_run_is_private_as_assumed():
    for first, second in zip(*LAWS.values(), strict=True):
        assert DOWN - 1e-12 <= first / second <= UP + 1e-12


def test_the_audit_lets_three_runs_pass_and_refutes_the_price_of_one(stop_randomly):
    sound = audit_mechanism(stop_randomly, "D", "D'", claimed=claim(FACTOR * EPSILON), trials=8000)
    assert sound.passed, str(sound)
    assert sound.epsilon_lower > EPSILON


def test_the_best_of_a_known_number_is_caught_and_costs_more_than_three(best_of_ten):
    naive = audit_mechanism(best_of_ten, "D", "D'", claimed=claim(EPSILON), trials=4000)
    assert not naive.passed, str(naive)
    first, second = ((1 - top) ** 10 - low**10 for low, _, top in LAWS.values())  # the best is a 1
    assert math.log(first / second) > FACTOR * EPSILON


def test_the_exponential_choice_keeps_its_epsilon_and_needs_most_of_it():
    asked = HypothesisChoice(
        candidates=(Constant(code=0), Constant(code=1)), guarantee=claim(1.0, "replace-one")
    )
    found = audit_question(asked, rows([0] * 6), rows([0] * 5 + [1]), trials=6000, noise=Rehearsal(0))
    assert found.passed, str(found)
    assert found.epsilon_lower > 0.5


def test_the_law_of_the_best_is_the_one_that_the_proof_bounds(stop_randomly):
    stop, n = 1 / 20, 1500
    at_most = np.cumsum(LAWS["D"])
    expected = np.diff(stop * at_most / (1 - (1 - stop) * at_most), prepend=0)
    seen = np.bincount([stop_randomly("D") for _ in range(n)], minlength=3) / n
    assert np.abs(seen - expected).max() < 5 * math.sqrt(0.25 / n)


def law_of_best(law, stop):
    """Probabilities of the best score, lowest first: what the proof computes."""
    at_most = np.cumsum(law, axis=-1)
    at_most /= at_most[..., -1:]
    return np.diff(stop * at_most / (1 - (1 - stop) * at_most), prepend=0, axis=-1)


def losses(first, second):
    return np.abs(np.log(first) - np.log(second)).max(axis=-1)


def private_pairs(rng, count, scores=4):
    """Laws of one run on two neighbours, with the epsilon that they really have."""
    first = rng.dirichlet(np.full(scores, 0.7), size=count) + 1e-6
    second = first * np.exp(rng.uniform(-1, 1, size=first.shape))
    first, second = (each / each.sum(axis=1, keepdims=True) for each in (first, second))
    return first, second, losses(first, second)


@pytest.mark.parametrize("runs", [1, 2, 20, 2000])
def test_no_pair_of_laws_loses_more_than_three_runs(runs):
    """Exactly, without sampling: for twenty thousand pairs of laws, of which many are extreme."""
    first, second, epsilon = private_pairs(np.random.default_rng(runs), 20_000)
    lost = losses(law_of_best(first, 1 / runs), law_of_best(second, 1 / runs))
    assert np.all(lost <= FACTOR * epsilon * (1 + 1e-9))
    if runs == 1:
        np.testing.assert_allclose(lost, epsilon, rtol=1e-9)


def test_the_factor_of_three_cannot_be_lowered():
    """A rare score y, of which the neighbour has e^ε as much; what is above it is e^-ε as likely there."""
    epsilon, above, seldom, runs = 0.1, 1e-3, 1e-9, 10**7
    first = np.array([1 - above - seldom, seldom, above])
    second = np.array([0.0, seldom * math.exp(epsilon), above * math.exp(-epsilon)])
    second[0] = 1 - second.sum()
    assert losses(first, second) == pytest.approx(epsilon, rel=1e-3)
    lost = losses(law_of_best(first, 1 / runs)[1:], law_of_best(second, 1 / runs)[1:])
    assert 2.9 * epsilon < lost < 3 * epsilon * (1 + 1e-3)


def search_over(labels, noise):
    """The search of a classifier, by the questions that it asks: noisy counts, then a noisy score."""
    fit = CellStatistics(tables=(CELL,), n_classes=2, guarantee=claim(1.0))
    fitted_on, held_out = rows(FITTED), rows(labels)
    score = {"tables": (CELL,), "n_classes": 2, "count": "signed", "guarantee": claim(1.0)}

    def once(drawn):
        candidate = drawn.below(2)
        counts = answer_rows(fit, fitted_on, noise=drawn)[fit.names(0)[0]][0]
        code = int(counts.argmax()) if candidate else 0
        asked = OutcomeTables(hypothesis=Constant(code=code), **score)
        return -float(answer_rows(asked, held_out, noise=drawn)["table.0"][0]), (candidate, code)

    return best_of_random_runs(once, runs=4, noise=noise)


@pytest.mark.statistical
def test_the_audit_of_real_fits_and_scores_stays_within_three_runs():
    """The odd row is held out; false alarms: 1 %."""
    noise = Rehearsal(1)
    held = [0, 0, 1, 1], [0, 0, 1, 1, 1]
    found = audit_mechanism(
        lambda labels: search_over(labels, noise), *held, claimed=claim(FACTOR * 1.0), trials=1500
    )
    assert found.passed, str(found)
    assert found.epsilon_lower > 0


def test_each_candidate_is_tried_with_probability_nine_tenths():
    for m in (2, 4, 10):
        assert default_runs(m) / (default_runs(m) + m - 1) == pytest.approx(0.9)


def test_a_search_is_never_sold_below_three_runs():
    ask = {"candidates": 2, "runs": 2}
    with keep_search(lambda _: (0.0, 1, None), epsilon=1.0) as name:
        cheap = RandomStopping(search=name, guarantee=claim(2.9), **ask)
        with pytest.raises(InputError, match="3 times"):
            answer_rows(cheap, rows([0, 1]), noise=Rehearsal(0))
        paid = RandomStopping(search=name, guarantee=claim(3.0), **ask)
        assert paid.price.epsilon == 3.0
        assert answer_rows(paid, rows([0, 1]), noise=Rehearsal(0))["choice"].tolist() == [1]
    with pytest.raises(InputError, match="another process"):
        answer_rows(paid, rows([0, 1]), noise=Rehearsal(0))
    with pytest.raises(InputError, match="pure epsilon"):
        RandomStopping(search="", guarantee=ApproxDP(epsilon=1, delta=1e-6, relation="add/remove"), **ask)
