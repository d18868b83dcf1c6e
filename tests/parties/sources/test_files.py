import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SourceError, SourceOutageError
from privada.parties import Number, Rows, Schema
from privada.parties.sources.files import identify, identify_files

SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)])


def test_every_change_of_a_file_changes_its_identity(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("x\n1\n")
    first = identify(file)
    assert identify(file) == first
    stat = file.stat()
    file.write_text("x\n2\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same size, same time of change
    second = identify(file)
    assert second != first
    other = tmp_path / "other.csv"
    other.write_text("x\n3\n")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(file)
    assert identify(file) not in {first, second}
    assert identify_files([tmp_path / "nothing"]) == ""


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        pq.write_table(pa.table({"x": [float(i)] * 5}), tmp_path / f"{i}.parquet")
    return tmp_path


def test_a_file_that_changes_during_an_answer_is_an_error(folder):
    rows = Rows(folder, schema=SCHEMA)
    with pytest.raises(SourceError, match="have changed since they were loaded"), rows.pinned() as now:
        assert now.check() == 15
        pq.write_table(pa.table({"x": [1.0] * 5}), folder / "3.parquet")


def test_a_partition_that_is_missing_is_an_error(folder):
    rows = Rows(folder, schema=SCHEMA)
    (folder / "1.parquet").unlink()
    with pytest.raises(SourceOutageError, match=r"1\.parquet is out of reach"), rows.pinned():
        pytest.fail("it was opened")
    with pytest.raises(SourceOutageError, match="out of reach"):
        rows.check()
