"""Auditing a registered method: every question, both auditors, plain results."""

import json
from dataclasses import replace

import numpy as np
import pytest

from privada.audit import audit_method
from privada.methods.cells.partition import Bins
from privada.methods.cells.question import CellStatistics
from privada.methods.registry import Example, Method, method
from privada.parties.schema import Number, Schema
from privada.privacy import Pure, Unit

PERSON = Unit(name="person", max_rows=2)


def persons(unit=PERSON):
    """A case of persons with several rows; the question may be priced for another unit than theirs."""
    schema = Schema(columns=[Number(name="x", low=0, high=1)], person_id="who", max_rows=2)
    question = CellStatistics(
        tables=(Bins(feature=0, edges=np.array([0.5])),),
        guarantee=Pure(epsilon=1.0, relation="add/remove", unit=unit),
    )
    data = {"data": np.linspace(0, 1, 12)[:, None], "person": np.arange(12) // 4}
    return Example(schema=schema, data=data, questions=(question,), learner=None)


def persons_by_row():
    return persons(unit=replace(PERSON, max_rows=1))


def card(example):
    return Method(
        name="toy", title="", paper="", question_paths=(), study_path="", example_path=f"{__name__}:{example}"
    )


@pytest.mark.statistical
def test_every_question_is_audited_and_said(rehearsal):
    """False alarm: 1e-2 for each of the questions."""
    found = audit_method(method("cells"), trials=2000, noise=rehearsal)
    assert len(found) == len(method("cells").example().questions)
    for audit in found:
        assert audit.passed, str(audit)
        plain = json.loads(json.dumps(audit.to_dict()))
        assert plain["replay"]["passed"]
        assert plain["blackbox"]["trials"] == 2000
        assert "black box passed" in str(audit)


@pytest.mark.statistical
def test_persons_are_audited_as_persons(rehearsal):
    """False alarm: 1e-2."""
    (sound,) = audit_method(card("persons"), trials=2000, noise=rehearsal)
    assert sound.passed, str(sound)
    assert sound.worst.share == pytest.approx(1.0, abs=0.2)


@pytest.mark.statistical
def test_a_price_for_one_row_is_caught_where_persons_have_two(rehearsal):
    (broken,) = audit_method(card("persons_by_row"), trials=4000, noise=rehearsal)
    assert not broken.passed
    assert "counts: 2 of 1 allowed" in broken.worst.violations
    assert not broken.blackbox.passed
