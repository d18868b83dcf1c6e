"""Audits of transport: sound questions pass under every relation.

What the paper prints instead is caught in `lab/tests/audit`.
Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds; of a replay: none.
"""

from dataclasses import replace

import numpy as np
import pytest

from privada.audit import (
    Sample,
    across_batches,
    audit_mechanism,
    audit_question,
    landmarks,
    neighbours,
    replay,
)
from privada.audit.transcript import coupled
from privada.methods.transport import ClassStatistics, FeatureMap, RowRelease, ask_head
from privada.parties import Rows, Schema
from privada.parties.schema import Category
from privada.privacy import ZCDP, ApproxDP, Relation, Unit

RNG = np.random.default_rng(5)
X, Y = RNG.uniform(-1, 1, size=(30, 3)), RNG.integers(3, size=30)
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=3, size=30, label=Category(name="y", values=(0, 1, 2)))
MAP = FeatureMap.random(3, 2, seed=4, radius=0.8)
ONE = ApproxDP(epsilon=1.0, delta=1e-3, relation="replace-one")
PERSON = Unit(name="person", max_rows=3)
KINDS = ("descent", "statistics", "moments", "rows", "labelled rows", "attribute rows")


def asked(kind, relation=Relation.REPLACE_ONE, unit=None):
    guarantee = (
        replace(ONE, relation=relation) if unit is None else replace(ONE, relation=relation, unit=unit)
    )
    if kind == "descent":
        return ask_head(MAP, size=30, n_classes=3, guarantee=guarantee)
    if kind in ("statistics", "moments"):
        return ClassStatistics(features=MAP, n_classes=3, moments=kind == "moments", guarantee=guarantee)
    if kind == "attribute rows":
        attribute = replace(ONE, relation="attribute")
        return RowRelease(features=MAP, size=30, attribute_width=2.0, guarantee=attribute)
    labels = {"n_classes": 3, "label_epsilon": 0.5} if kind == "labelled rows" else {}
    return RowRelease(features=MAP, size=30, guarantee=guarantee, **labels)


def replays(question, sample):
    marks = landmarks(question, sample.schema)
    rng = np.random.default_rng(0)
    for pair in neighbours(sample, relation=question.guarantee.relation, rng=rng, landmarks=marks):
        if len(pair.sample) != len(sample) and isinstance(question, RowRelease):
            continue  # the size is public
        rows, neighbour = pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(1))
        yield replay(question, rows, neighbour, pair=pair.name), rows, neighbour


@pytest.mark.parametrize("kind", KINDS)
def test_every_replay_passes(kind):
    results = [result for result, _, _ in replays(asked(kind), Sample.of(X, y=Y, schema=SCHEMA))]
    assert len(results) > 3
    for result in results:
        assert result.passed, str(result)
    assert max(check.share for result in results for check in result.draws) > 0.5


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("kind", ["statistics", "moments"])
def test_statistics_pass_for_rows_and_persons(kind, relation):
    for unit in (None, PERSON):
        schema, person = SCHEMA, None
        if unit is not None:
            schema, person = replace(SCHEMA, person_id="who", max_rows=3), np.arange(30) // 5
        sample = Sample.of(X, y=Y, schema=schema, person=person)
        for result, _, _ in replays(asked(kind, relation, unit), sample):
            assert result.passed, str(result)


def test_a_row_that_moves_to_another_batch_changes_nothing():
    pair = across_batches(Sample.of(X, y=Y, schema=SCHEMA), relation=Relation.REPLACE_ONE)
    question = asked("moments")
    assert replay(question, pair.sample.rows(), pair.neighbour.rows(), pair=pair.name).passed


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_every_black_box_bound_stays_within_the_claim(kind, rehearsal):
    question = asked(kind)
    found = list(replays(question, Sample.of(X, y=Y, schema=SCHEMA)))
    _, rows, neighbour = max(found, key=lambda each: each[0].share)
    result = audit_question(question, rows, neighbour, trials=1500, noise=rehearsal)
    assert result.passed, str(result)


@pytest.mark.statistical
def test_sampled_batches_stay_within_their_amplified_claim(rehearsal):
    """A replay cannot see sampling; outputs can: 4 rows, 1 drawn, opposite corners."""
    question = RowRelease(features=MAP, size=4, batch_size=1, guarantee=ONE)
    whole = RowRelease(features=MAP, size=4, guarantee=ONE)
    assert question.plan.draws["rows"].scale < whole.plan.draws["rows"].scale
    schema = replace(SCHEMA, size=4)
    base, moved = np.zeros((4, 3)), np.zeros((4, 3))
    base[0], moved[0] = 1.0, -1.0
    sides = [Rows(side, y=np.zeros(4, int), schema=schema) for side in (base, moved)]
    result = audit_question(question, *sides, trials=3000, noise=rehearsal)
    assert result.passed, str(result)


@pytest.mark.statistical
def test_without_sampling_the_same_noise_is_caught(rehearsal):
    """Amplified noise on a batch whose membership is known: the auditor sees more than the claim."""
    question = RowRelease(
        features=MAP, size=40, batch_size=1, guarantee=replace(ONE, epsilon=0.3, delta=1e-4)
    )
    sigma = question.plan.draws["rows"].scale

    def known(row):
        return MAP.apply(row) + sigma * rng.normal(size=(1, 2))

    rng = np.random.default_rng(0)
    sides = np.full((1, 3), 1.0), np.full((1, 3), -1.0)
    result = audit_mechanism(known, *sides, claimed=question.guarantee, trials=6000)
    assert not result.passed


def test_a_question_priced_for_one_attribute_is_caught_on_a_whole_row():
    question = asked("attribute rows")
    sample = Sample.of(X, y=Y, schema=SCHEMA)
    pairs = neighbours(sample, relation="replace-one", rng=np.random.default_rng(0))
    equal = [pair for pair in pairs if len(pair.sample) == 30]
    results = [
        replay(question, pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(1))) for pair in equal
    ]
    assert not all(result.passed for result in results)


def test_zcdp_replays_pass_too():
    question = ClassStatistics(
        features=MAP, n_classes=3, moments=True, guarantee=ZCDP(rho=0.1, relation="replace-one")
    )
    for result, _, _ in replays(question, Sample.of(X, y=Y, schema=SCHEMA)):
        assert result.passed, str(result)
