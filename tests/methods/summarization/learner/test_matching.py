"""Public settings: questions that follow from them stay within the budgets."""

from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import EmbeddedRows, InitialRows, Matching, SummaryRows
from privada.methods.summarization.learner.allocation import Allocation, Reference
from privada.privacy import ApproxDP, PureDP
from privada.privacy.accounting import accountant
from privada.privacy.mechanism import gaussian_event

NOWHERE = Reference(direction=np.zeros(40), threshold=0.0)


def allocation(rows):
    return Allocation(rows=rows, sizes=rows, suitable={}, target=np.ones(40), variance=0.3, releases=())


def test_sum_and_count_of_an_owner_cost_its_budget_together(matching):
    first, second = matching.sum_question(), matching.near_question(NOWHERE)
    mu = np.hypot(*(each.guarantee.gaussian_mu() for each in (first, second)))
    assert mu == pytest.approx(matching.owners.gaussian_mu(), rel=1e-6)
    assert accountant.satisfies(gaussian_event(mu), matching.owners)
    pure = replace(matching, owners=PureDP(epsilon=2.0, relation="replace-one"))
    parts = (pure.sum_question(), pure.near_question(NOWHERE))
    assert sum(each.guarantee.epsilon for each in parts) <= 2.0


def test_what_is_asked_for_is_known_beforehand(matching):
    asks = list(matching.planned_asks("v", {"a": 10, "b": 20, "empty": 0}))
    assert [(ask.owner, ask.question.kind) for ask in asks] == [
        ("v", "summarization.sum"),
        *((name, kind) for name in "ab" for kind in ("summarization.sum", "summarization.near")),
    ]
    assert [ask.owner for ask in matching.planned_asks("v", {"a": 10})] == ["v"], (
        "a single owner pays nothing"
    )
    rows = list(matching.planned_row_asks({"a": 10, "empty": 0}))
    assert [(ask.owner, ask.to) for ask in rows] == [("a", "curator")]


def test_rows_match_what_is_missing_beside_initial_rows(matching):
    question = matching.rows_question(allocation({"a": 20}), size=20)
    assert type(question) is SummaryRows
    assert np.array_equal(question.target, np.ones(40))
    assert question.variance == 0.3
    assert replace(matching, denoised=False).rows_question(allocation({"a": 20}), size=20).variance == 0.0
    held = InitialRows(mean=np.zeros(40), size=20)
    beside = replace(matching, initial=held, embedded=True).rows_question(allocation({"a": 20}), size=20)
    assert type(beside) is EmbeddedRows
    assert np.allclose(beside.target, 2.0)
    assert beside.variance == pytest.approx(4 * 0.3)


def test_settings_are_checked_by_name(matching):
    with pytest.raises(InputError, match="owners to be a Guarantee"):
        replace(matching, owners=None)
    with pytest.raises(InputError, match="size"):
        replace(matching, size=0)
    other = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    with pytest.raises(InputError, match="public sizes"):
        Matching(embedding=matching.embedding, size=1, validation=matching.validation, owners=other)
