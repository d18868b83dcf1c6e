"""Every room's example is small, complete, generated and fits its own schema."""

from functools import cache

import numpy as np
import pytest

from privada.methods.method import methods
from privada.parties.rows import Rows

METHODS = list(methods())


@cache
def example(name):
    return methods()[name].example()


@pytest.mark.parametrize("name", METHODS)
def test_rows_are_few_and_fit_the_schema(name, rehearsal):
    for case in example(name).cases:
        rows = Rows(
            case.data["data"],
            schema=case.schema,
            y=case.data.get("y"),
            person=case.data.get("person"),
            noise=rehearsal,
        )
        assert 40 <= rows.check() <= 250
        if case.schema.size is not None:
            assert rows.check() == case.schema.size


@pytest.mark.parametrize("name", METHODS)
def test_another_call_makes_the_same_case(name):
    for case, again in zip(example(name).cases, methods()[name].example().cases, strict=True):
        assert case.data.keys() == again.data.keys()
        assert all(np.array_equal(case.data[key], again.data[key]) for key in case.data)
        digests = [[question.digest for question in side.questions] for side in (case, again)]
        assert digests[0] == digests[1]


@pytest.mark.parametrize("name", METHODS)
def test_questions_are_the_rooms_own_differ_and_fit_the_schema(name):
    cases = example(name).single_cases
    assert {type(case.questions[0]) for case in cases} <= set(methods()[name].questions())
    assert len({case.questions[0].digest for case in cases}) == len(cases)
    for case in cases:
        case.questions[0].fits(case.schema)
        assert case.questions[0].guarantee.unit == case.schema.unit


@pytest.mark.parametrize("name", METHODS)
def test_there_are_questions_under_several_guarantees(name):
    guarantees = [question.guarantee for question in example(name).questions]
    assert len({type(guarantee) for guarantee in guarantees}) >= 2
    if name != "reweighting":  # whose questions are all under replace-one
        assert len({guarantee.relation for guarantee in guarantees}) >= 2


@pytest.mark.parametrize("name", METHODS)
def test_the_learner_asks_the_owner_that_it_is_given(name):
    assert {ask.owner for ask in example(name).inquiry("house").asks} == {"house"}


@pytest.mark.parametrize("name", METHODS)
def test_the_estimator_is_fresh_and_holds_no_row(name):
    made = example(name)
    if made.estimator is None:
        pytest.skip("no estimator")
    estimator = made.estimator(3)
    assert estimator.get_params()["insecure_seed"] == 3
    assert not [attribute for attribute in vars(estimator) if attribute.endswith("_")]
    for value in estimator.get_params(deep=False).values():
        assert value is not made.data["data"]
