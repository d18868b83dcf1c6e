"""Generated rows: samples that can be changed, and single rows worth trying."""

import numpy as np
import pandas as pd
import pytest

from privada.audit import Sample, landmarks, neighbours
from privada.audit.rows import middle, near_low, records
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, NearestCells
from privada.methods.cells.questions.statistics import CellStatistics
from privada.parties.schema import Category, Date, Number, Schema
from privada.privacy import PureDP

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


def test_landmarks_are_points_ties_and_edges():
    schema = Schema.of_numbers(bounds=(0, 1), width=2)
    claimed = PureDP(epsilon=1, relation="add/remove")
    tables = (
        NearestCells(centers=np.array([[0.0, 0.0], [1.0, 0.0]])),
        Bins(feature=0, edges=np.array([0.25])),
    )
    marks = landmarks(CellStatistics(tables=tables, guarantee=claimed), schema)
    assert [0.5, 0.0] in marks.tolist()
    assert [0.25, 0.25] in marks.tolist()
    assert landmarks(CellStatistics(tables=tables, guarantee=claimed), MIXED) is None
    sample = Sample.of(np.full((3, 2), 0.1), schema=schema)
    assert "add landmark 0" in {pair.name for pair in pairs(sample, "add/remove", landmarks=marks)}


def test_every_record_is_one_row_that_its_name_describes():
    sample = Sample.of(np.array([[30.0, "f"], [40.0, "m"]], dtype=object), schema=MIXED, y=["no", "yes"])
    found = dict(records(sample, np.random.default_rng(0), None))
    assert all(len(row) == 1 for row in found.values())
    assert found["the low corner"].X.tolist() == [[0, "f"]]
    assert found["the high corner"].X.tolist() == [[120, "m"]]
    assert found["a far outlier"].X[0, 0] == 120e6
    assert found["the opposite outlier"].X[0, 0] == -1e6
    assert np.isnan(found["a missing value"].X[0, 0])
    assert found["the high corner"].y.tolist() == ["yes"]


def test_without_columns_that_may_miss_values_there_is_no_missing_value():
    sample = Sample.of(np.zeros((2, 1)), schema=Schema.of_numbers(bounds=(0, 1), width=1))
    assert "a missing value" not in dict(records(sample, np.random.default_rng(0), None))


def test_rows_between_the_corners_lie_where_they_say():
    sample = Sample.of(np.zeros((2, 2)), schema=Schema.of_numbers(bounds=(-1, 3), width=2))
    assert middle(sample).X.tolist() == [[1.0, 1.0]]
    np.testing.assert_allclose(near_low(sample).X, -0.96)


def test_records_have_dates_and_ordered_categories_within_and_far_beyond_the_bounds():
    schema = Schema(
        columns=[
            Date(name="seen", first="2020-01-01", last="2025-01-01", missing=True),
            Category(name="stage", values=("I", "II", "III"), ordered=True),
            Number(name="visits", low=0, high=9, whole=True),
        ]
    )
    X = np.array([[np.datetime64("2021-01-01"), "II", 3.0]] * 4, dtype=object)
    found = dict(records(Sample(schema=schema, X=X), np.random.default_rng(0), None))
    encoded = {name: record.rows(noise=None).gathered().X[0] for name, record in found.items()}
    assert encoded["the low corner"].tolist() == [0, 0, 0, 0]
    assert encoded["the high corner"].tolist() == [1827, 0, 2, 9]
    assert encoded["a far outlier"].tolist() == [1827, 0, 2, 9]
    assert encoded["a missing value"][1] == 1
