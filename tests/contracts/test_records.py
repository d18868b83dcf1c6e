"""What a record adds is a function of that record alone, whatever stands beside it and wherever it stands."""

import dataclasses

import numpy as np
import pytest

from privada.audit.transcript import coupled
from privada.methods import methods
from privada.parties.answering import answer_rows
from privada.parties.rows import BATCH, Rows

SUMS = {  # the first draw is a sum over records, or several are
    "cells.statistics",
    "evaluation.outcomes",
    "evaluation.errors",
    "clustering.nna",
    "clustering.local",
    "clustering.pyramid",
    "marginals.outcomes",
    "marginals.choice",
    "marginals.histogram",
    "marginals.squares",
    "marginals.linear",
    "reweighting.linear",
    "transport.linear",
    "reweighting.convex",
    "reweighting.nonconvex",
    "reweighting.mixture",
    "reweighting.correction",
    "reweighting.module",
    "transport.statistics",
}
ORDERLESS = SUMS | {
    "clustering.nas",
    "clustering.radius",
    "reweighting.discrepancy",
    "reweighting.finite-discrepancy",
}
CASES = [
    pytest.param(name, index, id=f"{name}-{index}-{question.kind}")
    for name, method in methods().items()
    for index, case in enumerate(method.example().single_cases)
    for question in case.questions
    if question.kind in ORDERLESS
]


def rows_of(example, at):
    """Some of the example's rows, in this order."""
    schema = dataclasses.replace(example.schema, size=None)
    data = {name: np.asarray(value)[at] for name, value in example.data.items()}
    return Rows(data.pop("data"), schema=schema, noise=coupled(0), **data)


def seen(question, rows):
    """Exact values of every draw, and the payload, under one fixed noise."""
    exact = {}
    payload = answer_rows(
        question, rows, noise=coupled(3), witness=lambda name, _, value: exact.setdefault(name, value)
    )
    return exact, payload


@pytest.mark.parametrize(("name", "index"), CASES)
def test_the_order_of_the_rows_changes_no_bit(name, index):
    example = methods()[name].example().single_cases[index]
    question, n = example.questions[0], len(example.data["data"])
    if example.schema.person_id:
        pytest.skip("rows of persons are chosen at random, by their place")
    first = seen(question, rows_of(example, np.arange(n)))
    for order in (np.arange(n)[::-1], np.random.default_rng(1).permutation(n)):
        again = seen(question, rows_of(example, order))
        for mine, other in zip(first, again, strict=True):
            assert mine.keys() == other.keys()
            for key, value in mine.items():
                assert np.array_equal(value, other[key]), key


@pytest.mark.parametrize(("name", "index"), [case for case in CASES if "nas" not in case.id])
def test_sums_over_all_rows_are_sums_over_their_parts(name, index):
    """Parts of odd lengths, whose records stand at other places, beside others, in other batches."""
    example = methods()[name].example().single_cases[index]
    question, n = example.questions[0], len(example.data["data"])
    if question.kind not in SUMS or example.schema.person_id:
        pytest.skip("not a sum over rows")
    at = np.random.default_rng(2).integers(n, size=n)
    whole, _ = seen(question, rows_of(example, at))
    steps = [name for name in whole if name.startswith("gradient_")]  # later ones start elsewhere
    parts = [seen(question, rows_of(example, part))[0] for part in np.split(at, [1, 2, 5, 12, 29, 40])]
    for key in steps[:1] or whole:
        assert np.array_equal(whole[key], sum(part[key] for part in parts)), key


@pytest.mark.parametrize("kind", ["reweighting.finite-discrepancy"])
def test_losses_of_many_rows_are_summed_exactly(kind):
    """One record more in front moved a float sum of a million losses by more than was allowed for."""
    example = methods()["reweighting"].example()
    question = next(each for each in example.questions if each.kind == kind)
    n = 3 * BATCH + 17
    at = np.random.default_rng(5).integers(len(example.data["data"]), size=n)
    found = [seen(question, rows_of(example, order))[0] for order in (at, np.sort(at), np.roll(at, 1))]
    for other in found[1:]:
        for key, value in found[0].items():
            assert np.array_equal(value, other[key])
