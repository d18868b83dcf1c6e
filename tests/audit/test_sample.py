"""Generated rows: from what an owner takes in memory, and changed without touching others."""

import numpy as np
import pandas as pd
import pytest

from privada.audit import Sample, neighbours
from privada.exceptions import InputError
from privada.parties.schema import Category, Number, Schema

MIXED = Schema(
    columns=[Number(name="age", low=0, high=120, missing=True), Category(name="sex", values=("f", "m"))],
    label=Category(name="ill", values=("no", "yes")),
)


def pairs(sample, relation, **options):
    return list(neighbours(sample, relation=relation, rng=np.random.default_rng(1), **options))


def test_samples_come_from_frames_and_refuse_paths(tmp_path):
    frame = pd.DataFrame({"age": [1.0, 2.0], "sex": ["f", "m"], "ill": ["no", "yes"], "other": [0, 0]})
    sample = Sample.of(frame, schema=MIXED)
    assert sample.y.tolist() == ["no", "yes"]
    assert sample.rows().check() == 2
    assert repr(sample) == "<Sample of 2 generated rows>"
    with pytest.raises(InputError, match="in memory"):
        Sample.of(tmp_path, schema=MIXED)
    with pytest.raises(InputError, match="at least one row"):
        pairs(sample.take([]), "add/remove")


def test_rows_are_taken_put_in_and_exchanged_with_their_labels_and_persons():
    schema = Schema(columns=[Number(name="x", low=0, high=9)], label=MIXED.label, person_id="who", max_rows=2)
    made = Sample.of(np.arange(3)[:, None], schema=schema, y=["no", "yes", "no"], person=list("abc"))
    other = made.take([1])
    grown = made.with_rows(other, at=0)
    assert (grown.X.ravel().tolist(), grown.person.tolist()) == ([1, 0, 1, 2], list("babc"))
    changed = made.replaced(2, other)
    assert (changed.y.tolist(), len(made)) == (["no", "yes", "yes"], 3)
    assert made.without([0, 2]).X.tolist() == [[1.0]]


def test_whole_numbers_can_be_exchanged_for_fractions():
    made = Sample.of([[1], [2]], schema=Schema.of_numbers(bounds=(0, 9), width=1))
    assert made.X.dtype == np.float64
