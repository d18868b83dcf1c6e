"""Parts are read in batches; only rows that count are seen, and persons must not change."""

import numpy as np
import pytest

from privada.exceptions import SchemaError
from privada.parties import Category, Number, Schema
from privada.parties.compute import batch as batch_module
from privada.parties.compute.batch import Batch, Part
from privada.parties.sources import open_source

SCHEMA = Schema(
    columns=[Number(name="x", low=0, high=99)],
    label=Category(name="y", values=("a", "b")),
    person_id="who",
    max_rows=1,
)
X, Y, WHO = np.arange(10.0)[:, None], np.array(["a", "b"] * 5), np.arange(10)


def part(**more):
    return Part(open_source(X, SCHEMA, Y, WHO.copy()), SCHEMA, **more)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(batch_module, "BATCH", 3)


def test_rows_that_do_not_count_are_not_seen():
    kept = WHO % 3 == 0
    found = list(part(kept=kept).batches())
    assert [len(each) for each in found] == [1, 1, 1, 1]
    assert np.concatenate([each.X[:, 0] for each in found]).tolist() == [0, 3, 6, 9]
    again = part(kept=kept).only(np.array([True, False, False, True]))
    assert np.concatenate([each.X[:, 0] for each in again.batches()]).tolist() == [0, 9]
    assert sum(len(each) for each in part().only(kept).batches()) == 4


@pytest.mark.parametrize("people", [WHO[::-1], WHO[:7], WHO + 1])
def test_other_persons_than_those_that_were_chosen_from_are_refused(people):
    assert sum(len(each) for each in part(people=WHO).batches()) == 10
    with pytest.raises(SchemaError, match="load the owner again"):
        list(part(people=people).batches())


def test_no_rows_have_the_schemas_width_and_type():
    nothing = Batch.of_none(SCHEMA)
    assert nothing.X.shape == (0, 1)
    assert nothing.labels.dtype == np.int64
    assert repr(part()) == "<Part>"
