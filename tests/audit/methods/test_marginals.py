"""Audits of learning through marginals: every example question under every relation and unit.

What the paper prints instead is caught in `lab/tests/audit`.
Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds; of a replay: none.
"""

from dataclasses import replace

import numpy as np
import pytest

from privada import Schema
from privada.audit import (
    Sample,
    across_batches,
    audit_question,
    landmarks,
    neighbours,
    replay,
)
from privada.audit.transcript import coupled
from privada.methods.cells import Bins
from privada.methods.marginals import (
    Constant,
    LabelHistogram,
    MarginalsDescent,
    OutcomeTables,
    SquaredErrors,
    linear,
)
from privada.methods.method import find_method
from privada.parties import Category, Number, Rows
from privada.privacy import ZCDP, PureDP, Relation, Unit

EXAMPLE = find_method("marginals").example()
PERSON = Unit(name="person", max_rows=3)
QUESTIONS = range(len(EXAMPLE.questions))
LINE = Schema.of_numbers(bounds=(0.0, 1.0), width=1, label=Category(name="label", values=(0, 1)))
ONE_BIN = (Bins(feature=0, edges=np.array([0.5])),)


def case(index, relation, unit=None):
    """An example question under a relation and unit, with its sample."""
    question, schema, person = EXAMPLE.questions[index], EXAMPLE.schema, None
    guarantee = replace(question.guarantee, relation=relation)
    if unit is not None:
        schema = replace(schema, person_id="who", max_rows=unit.max_rows)
        guarantee, person = replace(guarantee, unit=unit), np.arange(200) // 5
    return replace(question, guarantee=guarantee), Sample.of(schema=schema, person=person, **EXAMPLE.data)


def replays(question, sample):
    marks = landmarks(question, sample.schema)
    rng = np.random.default_rng(0)
    pairs = list(neighbours(sample, relation=question.guarantee.relation, rng=rng, landmarks=marks))
    if sample.person is None:
        pairs.append(across_batches(sample, relation=question.guarantee.relation))
    for pair in pairs:
        rows, neighbour = pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(1))
        yield replay(question, rows, neighbour, pair=pair.name), rows, neighbour


@pytest.mark.parametrize("unit", [None, PERSON], ids=["row", "person"])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("index", QUESTIONS)
def test_every_replay_passes(index, relation, unit):
    shares = []
    for result, _, _ in replays(*case(index, relation, unit)):
        assert result.passed, str(result)
        shares.append(result.share)
    assert max(shares) > 0.2  # the pairs come near the proof's bound


@pytest.mark.statistical
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE], ids=str)
@pytest.mark.parametrize("index", QUESTIONS)
def test_every_black_box_bound_stays_within_the_claim(index, relation, rehearsal):
    """On the pair that comes nearest to the proof's bound."""
    question, sample = case(index, relation)
    _, rows, neighbour = max(replays(question, sample), key=lambda found: found[0].share)
    result = audit_question(question, rows, neighbour, trials=4000, noise=rehearsal)
    assert result.passed, str(result)


@pytest.mark.parametrize("index", [0, 1, 4, 7])
def test_a_question_priced_for_another_relation_is_caught(index):
    """Add/remove prices on replaced rows must fail somewhere."""
    question, sample = case(index, Relation.ADD_REMOVE)
    pairs = neighbours(
        sample,
        relation="replace-one",
        rng=np.random.default_rng(0),
        landmarks=landmarks(question, sample.schema),
    )
    assert not all(replay(question, pair.sample.rows(), pair.neighbour.rows()).passed for pair in pairs)


def test_a_flip_in_its_bin_moves_a_signed_entry_by_two():
    """With the price of a joint table it would be caught: √2 is not enough for errors minus correct."""
    rows, flipped = (Rows(np.array([[0.2]]), y=np.array([label]), schema=LINE) for label in (0, 1))
    guarantee = EXAMPLE.questions[3].guarantee
    signed = OutcomeTables(tables=ONE_BIN, hypothesis=Constant(code=1), count="signed", guarantee=guarantee)
    result = replay(signed, rows, flipped)
    assert result.passed
    assert result.share > 0.95


@pytest.mark.parametrize("promise", [PureDP, ZCDP])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE], ids=str)
def test_squared_errors_pass_and_nearly_reach_their_bound(relation, promise):
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=1, label=Number(name="y", low=-9, high=9))
    question = SquaredErrors(
        tables=ONE_BIN,
        hypothesis=linear([[0.0]], [0.0]),
        largest=1.0,
        guarantee=promise(**{"epsilon" if promise is PureDP else "rho": 1.0}, relation=relation),
    )
    whole = Rows(np.array([[0.2], [0.8]]), y=np.array([9.0, 1.0]), schema=schema)
    less = Rows(np.array([[0.2]]), y=np.array([9.0]), schema=schema)
    moved = Rows(np.array([[0.2], [0.2]]), y=np.array([9.0, 9.0]), schema=schema)
    result = replay(question, whole, less if relation is Relation.ADD_REMOVE else moved)
    assert result.passed
    assert result.share > 0.9


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE], ids=str)
def test_a_histogram_reaches_its_bound(relation):
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=1, label=Number(name="y", low=-9, high=9))
    question = LabelHistogram(low=-9.0, high=9.0, bins=4, guarantee=ZCDP(rho=0.5, relation=relation))
    whole = Rows(np.array([[0.2], [0.8]]), y=np.array([9.0, -9.0]), schema=schema)
    less = Rows(np.array([[0.2]]), y=np.array([9.0]), schema=schema)
    moved = Rows(np.array([[0.2], [0.2]]), y=np.array([9.0, 9.0]), schema=schema)
    result = replay(question, whole, less if relation is Relation.ADD_REMOVE else moved)
    assert result.passed
    assert result.share > 0.95


@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE], ids=str)
def test_a_descent_passes_and_nearly_reaches_its_bound(relation, n_classes):
    """One step, records whose pulls are beyond the bound and, replaced, opposite."""
    label = Category(name="y", values=(0, 1)) if n_classes else Number(name="y", low=-9, high=9)
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=1, label=label)
    question = MarginalsDescent(
        loss="softmax" if n_classes else "squared",
        outputs=n_classes or 1,
        centre=np.array([0.5]),
        spread=np.array([0.01]),
        limit=3.0,
        constant=0.1,
        bound=0.5,
        size=2,
        steps=1,
        step_size=1.0,
        guarantee=ZCDP(rho=0.5, relation=relation),
    )
    low, high = (0, 1) if n_classes else (-9.0, 9.0)
    whole = Rows(np.array([[0.9], [0.9]]), y=np.array([high, low]), schema=schema)
    less = Rows(np.array([[0.9]]), y=np.array([high]), schema=schema)
    moved = Rows(np.array([[0.9], [0.9]]), y=np.array([high, high]), schema=schema)
    result = replay(question, whole, less if relation is Relation.ADD_REMOVE else moved)
    assert result.passed
    assert result.share > 0.95


def some(errors, rows):
    """That many rows in the first bin, that many of them errors of the constant 1."""
    return np.full((rows, 1), 0.2), np.repeat([0, 1], [errors, rows - errors])


@pytest.mark.statistical
def test_the_sound_oracle_passes_on_the_same_pairs(rehearsal):
    claimed = PureDP(epsilon=1 / 66, relation="add/remove")
    question = OutcomeTables(tables=ONE_BIN, hypothesis=Constant(code=1), guarantee=claimed)
    for before, after in (
        (some(1, 1), some(1, 2)),
        (some(0, 0), some(0, 1)),
        (some(100, 373), some(100, 374)),
    ):
        rows, neighbour = (Rows(X, y=y, schema=LINE) for X, y in (before, after))
        assert audit_question(question, rows, neighbour, trials=4000, noise=rehearsal).passed
