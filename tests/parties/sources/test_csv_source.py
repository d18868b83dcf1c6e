import pyarrow as pa
import pytest

from privada.exceptions import SchemaError
from privada.parties import Number, Schema
from privada.parties.csv.dialect import Dialect
from privada.parties.csv.reading import CsvFile
from privada.parties.sources.csv_source import CsvSource

SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)], person_id="who", max_rows=1)


def opened(text, schema=SCHEMA):
    return CsvSource(CsvFile("rows.csv", lambda: pa.BufferReader(text), Dialect(), schema.columns), schema)


def test_rows_are_read_again_and_again_and_persons_are_text():
    source = opened(b"who,x,more\n007,1,a\n7,2,b\n")
    for _ in range(2):
        (table,) = source.tables(10)
        assert table["x"].tolist() == [1, 2]
        assert source.column("who").tolist() == ["007", "7"]


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(SchemaError, match="lacks columns of the schema: who"):
        opened(b"x\n1\n")
