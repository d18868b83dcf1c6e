import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import InputError, SourceError
from privada.parties import Rows, Schema
from privada.parties.csv_files import Dialect
from privada.parties.sources import StoredRows, check_place


@pytest.fixture
def table(lines):
    return pa.table(dict(zip(("Age", "ward", "seen", "ill"), zip(*lines, strict=True), strict=True)))


def written(table, **rest):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **rest)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def folder(s3, table, request):
    name = request.node.name.replace("[", "-").rstrip("]")
    for i in range(3):
        body = written(table.slice(i * 200, 200), row_group_size=70)
        s3.put_object(Bucket="rows", Key=f"{name}/part-{i}.parquet", Body=body)
    s3.put_object(Bucket="rows", Key=f"{name}/_SUCCESS", Body=b"")
    return name


def test_parquet_in_a_bucket_has_the_same_rows(s3, folder, table, schema):
    expected = Rows(table, schema=schema).gathered()
    for url in (f"s3://rows/{folder}", f"s3://rows/{folder}/"):
        found = Rows(url, schema=schema).gathered()
        assert np.array_equal(found.X, expected.X)
        assert np.array_equal(found.y, expected.y)
    one = Rows(f"s3://rows/{folder}/part-1.parquet", schema=schema)
    assert one.check() == 200


def test_csv_in_a_bucket(s3, schema, lines):
    records = [f"{'' if age is None else age};{int(ill)}\n" for age, _, _, ill in lines]
    text = "Age;ill\n" + "".join(records)
    s3.put_object(Bucket="rows", Key="export.CSV", Body=text.encode())
    numbers = Schema(columns=schema.columns[:1], label=schema.label)
    rows = Rows(StoredRows("s3://rows/export.CSV", Dialect(delimiter=";")), schema=numbers)
    assert rows.check() == len(lines)


def test_objects_that_change_are_noticed(s3, folder, schema, table):
    rows = Rows(f"s3://rows/{folder}", schema=schema)
    with rows.pinned() as now:
        assert now.check() == 500
    s3.put_object(Bucket="rows", Key=f"{folder}/part-1.parquet", Body=written(table.slice(0, 200)))
    with pytest.raises(SourceError, match="have changed since they were loaded"), rows.pinned():
        pytest.fail("it was opened")
    again = Rows(f"s3://rows/{folder}", schema=schema)
    with pytest.raises(SourceError, match="have changed"), again.pinned() as now:
        now.check()
        s3.put_object(Bucket="rows", Key=f"{folder}/part-9.parquet", Body=written(table))


def test_a_partition_that_is_missing_is_named(s3, folder, schema):
    rows = Rows(f"s3://rows/{folder}", schema=schema)
    s3.delete_object(Bucket="rows", Key=f"{folder}/part-1.parquet")
    with pytest.raises(SourceError, match="cannot be read"):
        rows.check()
    with pytest.raises(SourceError, match="have changed"), rows.pinned():
        pytest.fail("it was opened")


def test_what_is_not_there_is_named(s3, schema):
    with pytest.raises(SourceError, match="There is nothing at rows.parquet"):
        Rows("s3://rows/nowhere/rows.parquet", schema=schema)
    s3.put_object(Bucket="rows", Key="junk.parquet", Body=b"junk")
    with pytest.raises(SourceError, match="junk.parquet cannot be read"):
        Rows("s3://rows/junk.parquet", schema=schema)


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:secret@rows/x",
        "s3://key@rows/x",
        "s3://rows/x?X-Amz-Signature=secret",
        "ftp://rows/x",
        "s3://rows/x#y",
    ],
)
def test_credentials_in_a_url_are_refused(url):
    with pytest.raises(InputError) as caught:
        check_place(url)
    assert "secret@" not in str(caught.value)
    assert "=secret" not in str(caught.value)
