"""The owner behind the estimators: a budget of one question, whatever it is made of."""

from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import BudgetError
from privada.methods.transport import ClassStatistics, FeatureMap, RowRelease
from privada.parties.in_memory import owner_in_memory
from privada.parties.schema import Category, Schema
from privada.privacy import ZCDP, ApproxDP

FEATURES = FeatureMap.random(3, 2, seed=0)
ONE = ApproxDP(epsilon=2.0, delta=1e-4, relation="replace-one")
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=3, size=50, label=Category(name="y", values=(0, 1)))
QUESTIONS = {
    "statistics": ClassStatistics(features=FEATURES, n_classes=2, guarantee=ONE),
    "statistics at rho": ClassStatistics(
        features=FEATURES, n_classes=2, guarantee=ZCDP(rho=0.1, relation="replace-one")
    ),
    "rows": RowRelease(features=FEATURES, size=50, guarantee=ONE),
    "labelled rows": RowRelease(features=FEATURES, size=50, n_classes=2, label_epsilon=1.0, guarantee=ONE),
    "batches": RowRelease(features=FEATURES, size=50, batch_size=5, batches=2, guarantee=ONE),
}


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_it_answers_once_and_states_the_guarantee(name):
    rng = np.random.default_rng(0)
    owner = owner_in_memory(
        rng.uniform(-1, 1, (50, 3)),
        [QUESTIONS[name]],
        y=rng.integers(2, size=50),
        schema=SCHEMA,
        budget=QUESTIONS[name].guarantee,
    )
    assert owner.answer(QUESTIONS[name]).guarantee == QUESTIONS[name].guarantee
    with pytest.raises(BudgetError):
        owner.answer(replace(QUESTIONS[name], salt="another"))
