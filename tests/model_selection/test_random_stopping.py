"""The best of a random number of private runs costs three runs; audits bound both choices from below."""

import math

import numpy as np
import pytest

from privada import Approximate, Category, Pure, Schema
from privada.audit import audit_mechanism, audit_question
from privada.exceptions import InputError
from privada.methods.hypotheses.questions.forms import Constant
from privada.methods.marginals import HypothesisChoice
from privada.model_selection.random_stopping import (
    FACTOR,
    RandomStopping,
    best_of_random_runs,
    default_runs,
    keeping_search,
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


def claim(epsilon, relation="add/remove"):
    return Pure(epsilon=epsilon, relation=relation)


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


def test_each_candidate_is_tried_with_probability_nine_tenths():
    for m in (2, 4, 10):
        assert default_runs(m) / (default_runs(m) + m - 1) == pytest.approx(0.9)


def test_a_search_is_never_sold_below_three_runs():
    ask = {"candidates": 2, "runs": 2}
    with keeping_search(lambda _: (0.0, 1, None), epsilon=1.0) as name:
        cheap = RandomStopping(search=name, guarantee=claim(2.9), **ask)
        with pytest.raises(InputError, match="3 times"):
            answer_rows(cheap, rows([0, 1]), noise=Rehearsal(0))
        paid = RandomStopping(search=name, guarantee=claim(3.0), **ask)
        assert paid.price.epsilon == 3.0
        assert answer_rows(paid, rows([0, 1]), noise=Rehearsal(0))["choice"].tolist() == [1]
    with pytest.raises(InputError, match="another process"):
        answer_rows(paid, rows([0, 1]), noise=Rehearsal(0))
    with pytest.raises(InputError, match="pure epsilon"):
        RandomStopping(search="", guarantee=Approximate(epsilon=1, delta=1e-6, relation="add/remove"), **ask)
