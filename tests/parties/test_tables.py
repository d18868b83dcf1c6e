import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privada.exceptions import InputError, SchemaError
from privada.parties import Category, Number, Schema

SCHEMA = Schema(
    columns=[Number(name="age", low=0, high=120), Category(name="ward", values=("a", "b"))],
    label=Category(name="ill", values=("no", "yes")),
)
FRAME = pd.DataFrame({"ill": ["no", "yes"], "extra": [1, 2], "ward": ["b", "a"], "age": [30, 150]})
EXPECTED = [[30, 0, 1], [120, 1, 0]]


def test_columns_are_found_by_name():
    for frame in (
        FRAME,
        pa.Table.from_pandas(FRAME),
        FRAME.to_dict("list"),
        pa.RecordBatch.from_pandas(FRAME),
    ):
        assert SCHEMA.encode(frame).tolist() == EXPECTED
        assert SCHEMA.encode_label(frame).tolist() == [0, 1]
    assert SCHEMA.encode(FRAME[["age", "ward"]].to_numpy()).tolist() == EXPECTED
    assert SCHEMA.encode(pa.Table.from_pandas(FRAME).to_reader()).tolist() == EXPECTED


def test_chunks_and_no_rows():
    table = pa.Table.from_pandas(FRAME)
    assert SCHEMA.encode(pa.concat_tables([table, table])).tolist() == EXPECTED * 2
    assert SCHEMA.encode(table.slice(0, 0)).shape == (0, 3)
    assert SCHEMA.decode(np.zeros((0, 3))).num_rows == 0


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="ward"), "lacks columns of the schema: ward"),
        ({"age": [1], "ward": ["a", "b"]}, "columns of one length"),
        ({"age": [1]}, "lacks columns of the schema: ward"),
        (np.zeros((2, 3)), "Expected rows of 2 columns"),
        (object(), "got object"),
        (FRAME.assign(ward="Mrs Smith"), "'ward' holds a value outside"),
        (pd.concat([FRAME, FRAME[["age"]]], axis=1), "columns of one name"),
    ],
)
def test_frames_that_do_not_fit_are_named(frame, message):
    with pytest.raises(SchemaError, match=message) as caught:
        SCHEMA.encode(frame)
    assert "Smith" not in str(caught.value)


def test_a_schema_without_a_label_encodes_none():
    with pytest.raises(InputError, match="no label"):
        Schema.of_numbers(bounds=(0, 1), width=1).encode_label(FRAME)
    with pytest.raises(InputError, match="rows of 3 features"):
        SCHEMA.decode(np.zeros(3))
