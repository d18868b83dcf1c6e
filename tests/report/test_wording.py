import math

import pytest

from privada.privacy import ZCDP, ApproxDP, PureDP
from privada.report.wording import best_guess, say_risk


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0])
def test_the_best_guess_is_that_of_randomised_response(epsilon):
    pure = PureDP(epsilon=epsilon, relation="add/remove")
    assert best_guess(pure) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)))
    loose = ApproxDP(epsilon=epsilon, delta=0.01, relation="add/remove")
    assert best_guess(pure) < best_guess(loose) <= best_guess(pure) + 0.005


def test_a_gaussian_answer_is_not_said_to_tell_less_than_it_does():
    rho = 0.125  # sensitivity 1, standard deviation 2: the best test is at the middle
    exact = 0.5 * (1 + math.erf(0.25 / math.sqrt(2)))
    assert best_guess(ZCDP(rho=rho, relation="add/remove")) >= exact


@pytest.mark.parametrize(
    ("relation", "words"),
    [("add/remove", "whether one row is in it"), ("replace-one", "contents"), ("attribute", "attribute")],
)
def test_the_relation_is_in_the_words(relation, words):
    said = say_risk(PureDP(epsilon=0.1, relation=relation))
    assert words in said
    assert "53 of 100" in said
