"""The forecast of a summary: from the noise on the validation mean alone."""

import pytest

from privada.exceptions import InputError
from privada.methods.summarization.learner.forecast import forecast_summary
from privada.methods.summarization.learner.matching import Matching
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.privacy.guarantee import ApproxDP

EMBEDDING = FourierEmbedding.of(width=3, n_features=60, gamma=0.5, random_state=0)


def expect(epsilon, size):
    budget = ApproxDP(epsilon=epsilon, delta=1e-5, relation="replace-one")
    matching = Matching(embedding=EMBEDDING, size=20, validation=budget, owners=budget)
    return forecast_summary(matching, validation_size=size)


def test_it_falls_with_rows_and_budget_and_gains_nothing_where_nothing_is_heard():
    assert expect(0.01, 50).worthwhile is False
    assert expect(0.5, 50).ratio > expect(4.0, 50).ratio > expect(4.0, 500).ratio
    assert expect(4.0, 5000).high < 1
    assert "random choice" in expect(1.0, 50).explanation


def test_a_validation_set_has_rows():
    with pytest.raises(InputError, match="validation_size"):
        expect(1.0, 0)
