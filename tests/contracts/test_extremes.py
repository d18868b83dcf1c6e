"""Extreme public parameters: a named refusal before anything is charged, or an answer; nothing else."""

import dataclasses
import math

import numpy as np
import pytest

from privada import Owner
from privada._text import quoted
from privada.exceptions import AnswerError, InputError, PrivadaError
from privada.methods import methods
from privada.privacy import ZCDP, ApproxDP, PureDP, Unit

VALUES = (0, 2**63, 10**400, 10**5000, -1.0, 5e-324, 1e-300, 1e-30, 1e30, 1e308, math.nan, math.inf)


def first_of_each():
    """One example of every kind under every sort of guarantee."""
    found = {}
    for name, method in methods().items():
        for index, case in enumerate(method.example().single_cases):
            (question,) = case.questions
            found.setdefault((question.kind, type(question.guarantee).__name__), (name, index))
    return found


CASES = [pytest.param(*place, id="-".join(kind)) for kind, place in first_of_each().items()]


def parameters(question):
    """Names and makers of a question for every numeric field and array, its own and its parts'."""
    for field in dataclasses.fields(question):
        value = getattr(question, field.name)
        if field.name in ("guarantee", "salt"):
            continue
        for path, change in _changes(value):
            yield f"{field.name}{path}", _replacing(question, field.name, change)


def _replacing(question, name, change):
    return lambda extreme: dataclasses.replace(question, **{name: change(extreme)})


def _changes(value):
    """Ways in which an extreme number can stand in a value."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        yield "", lambda extreme: extreme
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield "[:]", lambda extreme: np.full(value.shape, _as_float(extreme))
        yield "[0]", lambda extreme: np.r_[_as_float(extreme), value.ravel()[1:]].reshape(value.shape)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            for path, change in _changes(getattr(value, field.name)):
                yield f".{field.name}{path}", _inside(value, field.name, change)


def _inside(value, name, change):
    return lambda extreme: dataclasses.replace(value, **{name: change(extreme)})


def _as_float(extreme):
    return math.inf if isinstance(extreme, int) and abs(extreme) > 1e308 else float(extreme)


def guarantees(question):
    """The same question under extreme guarantees."""
    terms = {"relation": question.guarantee.relation, "unit": question.guarantee.unit}
    makers = {
        "epsilon": lambda extreme: PureDP(epsilon=extreme, **terms),
        "rho": lambda extreme: ZCDP(rho=extreme, **terms),
        "epsilon beside delta": lambda extreme: ApproxDP(epsilon=extreme, delta=1e-5, **terms),
        "delta": lambda extreme: ApproxDP(epsilon=1.0, delta=extreme, **terms),
        "max_rows": lambda extreme: dataclasses.replace(
            question.guarantee, unit=Unit(name="person", max_rows=extreme)
        ),
    }
    for name, make in makers.items():
        yield name, _replacing(question, "guarantee", make)


def owner_of(example, question):
    terms = {"relation": question.guarantee.relation, "unit": question.guarantee.unit}
    budgets = {PureDP: PureDP(epsilon=8000, **terms), ZCDP: ZCDP(rho=8000, **terms)}
    budget = budgets.get(type(question.guarantee), ApproxDP(epsilon=1000, delta=1e-6, **terms))
    return Owner(**example.data, schema=example.schema, dataset="rows", budget=budget)


def outcome(house, make, extreme):
    """What became of a question: refused without a charge, answered, or a fault in words."""
    before = len(list(house.ledger.lines("rows")))
    try:
        question = make(extreme)
        question.check_answer_size()
        release = house.answer(dataclasses.replace(question, salt=str(before)))
    except PrivadaError as error:
        charged = len(list(house.ledger.lines("rows"))) > before
        return f"{type(error).__name__} after the charge" if charged else _long(error)
    except Exception as error:
        return f"unnamed {type(error).__name__}"
    return "" if len(release.to_bytes()) <= question.answer_bytes else "an answer larger than announced"


def _long(error):
    return "a message without end" if len(str(error)) > 1000 else ""


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(("name", "index"), CASES)
def test_extreme_numbers_are_refused_by_name_or_answered(name, index):
    example = methods()[name].example().single_cases[index]
    (question,) = example.questions
    house = owner_of(example, question)
    faults = [
        f"{path} = {quoted(extreme)}: {said}"
        for path, make in (*parameters(question), *guarantees(question))
        for extreme in VALUES
        if (said := outcome(house, make, extreme))
    ]
    assert not faults, "\n".join(faults)


def known(kind, **change):
    """A question of an example, changed; and its owner."""
    for method in methods().values():
        for example in method.example().single_cases:
            (question,) = example.questions
            if question.kind == kind:
                return owner_of(example, question), lambda asked=question: dataclasses.replace(
                    asked, **change
                )
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("reweighting.convex", {"alpha": 1e-300}),
        ("reweighting.module", {"kappa2": 1e308}),
        ("clustering.radius", {"radius": 2**63}),
        ("clustering.nas", {"radius": 2**63}),
        ("clustering.nna", {"radius": 2**63}),
        ("reweighting.mixture", {"radius": 2**63}),
        ("reweighting.linear", {"bound": 2**63}),
        ("reweighting.discrepancy", {"intercept": 2**64}),
        ("clustering.local", {"count_share": 1e-30}),
    ],
)
def test_answers_that_failed_after_their_charge(kind, change):
    """Each failed for public reasons, with the charge made."""
    if kind == "reweighting.module":
        pytest.importorskip("torch")
    if {"alpha", "kappa2"} & set(change):
        house, make = known(kind)
        change = {"penalties": dataclasses.replace(make().penalties, **change)}
    house, make = known(kind, **change)
    before = len(list(house.ledger.lines("rows")))
    try:
        house.answer(make())
    except AnswerError:
        raise
    except InputError:
        assert len(list(house.ledger.lines("rows"))) == before


@pytest.mark.parametrize("rho", [1e-30, 1e-27])
def test_counts_under_much_noise_are_whole_or_refused(rho):
    """`clustering.local` put its counts on steps above 1, which no count is a multiple of."""
    _, make = known("clustering.local")
    terms = {"relation": make().guarantee.relation, "unit": make().guarantee.unit}
    question = dataclasses.replace(make(), guarantee=ZCDP(rho=rho, **terms))
    try:
        assert question.plan.draws["counts"].grid.exponent <= 0
    except InputError:
        return
