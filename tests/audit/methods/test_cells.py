"""Audits of counts and sums over cells: every example question under every relation and unit.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds; of a replay: none.
"""

from dataclasses import replace

import numpy as np
import pytest

from privada.audit import Sample, across_batches, audit_example, audit_question, landmarks, neighbours, replay
from privada.audit.transcript import coupled
from privada.methods.cells import CellStatistics, NearestCells
from privada.methods.method import find_method
from privada.privacy import ZCDP, Relation, Unit

EXAMPLE = find_method("cells").example()
PERSON = Unit(name="person", max_rows=3)
RELATIONS = list(Relation)
QUESTIONS = range(len(EXAMPLE.questions))


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
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("index", QUESTIONS)
def test_every_replay_passes(index, relation, unit):
    shares = []
    for result, _, _ in replays(*case(index, relation, unit)):
        assert result.passed, str(result)
        shares.append(result.share)
    assert max(shares) > 0.3  # the pairs come near the proof's bound


def test_sums_by_label_are_tight_where_a_row_changes_place_and_label():
    """One cell, corner to corner and class to class: both parts of the joint bound are used."""
    guarantee = ZCDP(rho=0.5, relation=Relation.REPLACE_ONE)
    middle = NearestCells(centers=np.array([[0.5, 0.5]]))
    question = CellStatistics(
        tables=(middle,), n_classes=2, radius=np.sqrt(0.5), recentred=True, width=2, guarantee=guarantee
    )
    _, sample = case(0, Relation.REPLACE_ONE)
    results = [result for result, _, _ in replays(question, sample)]
    assert all(result.passed for result in results)
    assert max(result.share for result in results) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("index", QUESTIONS)
def test_every_black_box_bound_stays_within_the_claim(index, relation, rehearsal):
    """On the pair that comes nearest to the proof's bound; false alarm 1e-2 each."""
    question, sample = case(index, relation)
    _, rows, neighbour = max(replays(question, sample), key=lambda found: found[0].share)
    result = audit_question(question, rows, neighbour, noise=rehearsal)
    assert result.passed, str(result)


@pytest.mark.statistical
def test_the_first_question_is_tight(rehearsal):
    """Counts by label at ε = 1 cost ε = 1: a bound of 0.85 or more shows that the auditor sees it."""
    (first,) = audit_example(replace(EXAMPLE, questions=EXAMPLE.questions[:1]), noise=rehearsal)
    assert first.passed
    assert first.blackbox.epsilon_lower > 0.85
    assert first.worst.share == pytest.approx(1.0)


@pytest.mark.parametrize("index", QUESTIONS)
def test_a_question_priced_for_another_relation_is_caught(index):
    """Add/remove prices replayed on replaced rows, and row prices on persons, must fail somewhere."""
    question, sample = case(index, Relation.ADD_REMOVE)
    pairs = neighbours(sample, relation=Relation.REPLACE_ONE, rng=np.random.default_rng(0))
    assert not all(replay(question, pair.sample.rows(), pair.neighbour.rows()).passed for pair in pairs)
    _, persons = case(index, Relation.ADD_REMOVE, PERSON)
    pairs = neighbours(persons, relation=Relation.ADD_REMOVE, rng=np.random.default_rng(0))
    sides = [(pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(1))) for pair in pairs]
    assert not all(replay(question, *side).passed for side in sides)
