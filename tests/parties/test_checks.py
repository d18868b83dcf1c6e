import json
import os
import time
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.exceptions import SchemaError
from privada.parties import Category, Date, Number, Owner, Rows, Schema
from privada.parties.checks import CheckMemory, check_source
from privada.parties.csv_files import Dialect
from privada.parties.sources import StoredRows, open_source
from privada.privacy import PureDP, SecureNoise

SCHEMA = Schema(
    columns=[
        Number(name="weight", low=0, high=200),
        Number(name="visits", low=0, high=9, whole=True, missing=True),
        Date(name="seen", first="2020-01-01", last="2025-01-01", missing=True),
        Category(name="ward", values=("a", "b"), missing=True),
    ],
    label=Category(name="ill", values=("no", "yes")),
    person_id="who",
    max_rows=2,
)
TEXT = """weight;visits;seen;ward;ill;who
80,5;1;01.02.2021;a;no;p
much;1;01.02.2021;a;no;p
300;1,5;31.02.2021;c;maybe;p
-1;;01.02.1990;;;q
80;2;01.02.2021
;2;01.02.2031;b;yes;
"""
GERMAN = Dialect(delimiter=";", decimal=",", date_format="%d.%m.%Y")


def report(data, schema=SCHEMA):
    return check_source(open_source(data, schema, None, None), schema)


def test_a_csv_file_is_counted_column_by_column(tmp_path):
    (tmp_path / "rows.csv").write_text(TEXT)
    found = report(StoredRows(tmp_path / "rows.csv", GERMAN)).to_dict()
    columns = {column.pop("name"): column for column in found["columns"]}
    assert columns == {
        "weight": {"unparsable": 1, "first_line": 3, "missing": 1, "below": 1, "above": 1, "fits": False},
        "visits": {"fraction": 1, "missing": 1, "fits": False},
        "seen": {"unparsable": 1, "first_line": 4, "below": 1, "above": 1, "fits": False},
        "ward": {"outside": 1, "missing": 1, "fits": False},
        "ill": {"outside": 1, "missing": 1, "fits": False},
    }
    assert (found["rows"], found["ragged_lines"], found["first_ragged_line"]) == (5, 1, 6)
    assert found["persons"] == {"persons": 2, "missing": 1, "over": 1, "dropped": 1, "kept": 3}
    assert not found["fits"]


def test_of_several_files_the_one_with_the_first_fault_is_named(tmp_path):
    header, *lines = TEXT.splitlines(keepends=True)
    for i, line in enumerate(lines):
        (tmp_path / f"{i}.csv").write_text(header + line)
    found = report(StoredRows(tmp_path, GERMAN)).to_dict()
    columns = {column["name"]: column for column in found["columns"]}
    assert (columns["weight"]["first_file"], columns["weight"]["first_line"]) == ("1.csv", 2)
    assert (found["rows"], found["ragged_lines"], found["first_ragged_file"]) == (5, 1, "4.csv")
    assert found["persons"] == {"persons": 2, "missing": 1, "over": 1, "dropped": 1, "kept": 3}


def test_a_file_that_fits_says_so(tmp_path):
    lines = TEXT.splitlines()
    (tmp_path / "rows.csv").write_text("\n".join([lines[0], *[lines[1]] * 3]))
    found = report(StoredRows(tmp_path / "rows.csv", GERMAN))
    assert found.fits
    assert (found.rows, found.counted) == (3, 2)


def test_values_of_the_wrong_kind_are_counted_one_by_one():
    weight, seen = SCHEMA.columns[0], SCHEMA.columns[2]
    mixed = np.array([1.0, "much", None, Decimal("2.5"), date(2024, 1, 1), "3"], dtype=object)
    assert weight.count_faults(mixed)["unparsable"] == 2
    assert weight.count_faults(mixed)["missing"] == 1
    mixed = np.array([date(2024, 1, 1), "2024-01-01", 3, "soon", None], dtype=object)
    assert seen.count_faults(mixed)["unparsable"] == 2


def test_persons_that_cannot_be_told_apart_are_an_error_here_too():
    schema = Schema(columns=[Number(name="x", low=0, high=1)], person_id="who", max_rows=1)
    table = pa.table({"x": [0.0, 0.0], "who": pa.array([2.0**60, 2.0**60])})
    with pytest.raises(SchemaError, match="too large to tell apart"):
        report(table, schema)


NUMBERS = st.sampled_from(["1", "2.5", "", "x", "inf", "999", "-1"])
ROWS = st.lists(
    st.tuples(
        NUMBERS,
        NUMBERS,
        st.sampled_from(["2021-01-01", "", "1800-01-01", "soon"]),
        st.sampled_from(["a", "b", "", "c"]),
        st.sampled_from(["no", "yes", "", "maybe"]),
        st.sampled_from(["p", "q", ""]),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=150)
@given(rows=ROWS)
def test_rows_fit_exactly_if_they_can_be_loaded(tmp_path_factory, rows):
    """What is remembered stands for the check at loading: it must never say more."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_text("weight,visits,seen,ward,ill,who\n" + "".join(",".join(row) + "\n" for row in rows))
    found = report(path)
    try:
        size = Rows(path, schema=SCHEMA, noise=SecureNoise()).check()
    except SchemaError:
        size = None
    assert found.fits == (size is not None)
    if size is not None:
        assert found.counted == size


SMALL = Schema(columns=[Number(name="x", low=0, high=9)], label=Category(name="y", values=("a", "b")))
BUDGET = PureDP(epsilon=1.0, relation="add/remove")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,a\n2,b\n")
    time.sleep(0.15)  # what changed just now is not remembered
    return path


@pytest.fixture
def memory(tmp_path):
    return CheckMemory(tmp_path / "rows.checked", "here")


def opened(data, memory, schema=SMALL, **rest):
    return Owner(data, schema=schema, dataset="rows", budget=BUDGET, memory=memory, **rest)


@pytest.fixture
def readings(monkeypatch):
    """How often all rows were read."""
    counted = []
    check = Rows.check
    monkeypatch.setattr(Rows, "check", lambda self: (counted.append(1), check(self))[1])
    return counted


def test_the_same_rows_are_read_once(file, memory, readings):
    for _ in range(3):
        opened(file, memory)
    assert len(readings) == 1
    assert memory.path.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(memory.path.read_text()).values()) == [2]


def test_other_rows_another_schema_and_another_place_are_read_again(file, memory, readings, tmp_path):
    opened(file, memory)
    stat = file.stat()
    file.write_text("x,y\n1,a\n2,c\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(SchemaError, match="not among the public classes"):
        opened(file, memory)
    file.write_text("x,y\n1,a\n2,b\n")
    time.sleep(0.15)
    opened(file, memory)
    wider = Schema(columns=[Number(name="x", low=0, high=10)], label=SMALL.label)
    opened(file, memory, schema=wider)
    opened(file, CheckMemory(memory.path, "there"))
    assert len(readings) == 5


def test_rows_that_do_not_fit_are_never_remembered(file, memory):
    file.write_text("x,y\n1,a\n2,c\n")
    time.sleep(0.15)
    for _ in range(2):
        with pytest.raises(SchemaError):
            opened(file, memory)
    assert not memory.path.exists()


def test_a_file_that_changes_while_it_is_read_is_not_remembered(file, memory):
    rows = Rows(file, schema=SMALL)
    identity = rows.identity
    file.write_text("x,y\n1,a\n9,c\n")
    memory.remember(rows, 2, identity=identity)
    assert not memory.path.exists()
    assert memory.recall(rows) is None


def test_rows_in_memory_have_nothing_to_be_known_by(memory, readings):
    for _ in range(2):
        opened(np.zeros((3, 1)), memory, y=np.array(["a", "b", "a"]))
    assert len(readings) == 2
    assert not memory.path.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"%s": -1}', '{"%s": true}', '{"%s": "2"}'])
def test_a_broken_memory_is_no_memory(file, memory, readings, text):
    opened(file, memory)
    key = next(iter(json.loads(memory.path.read_text())))
    memory.path.write_text(text.replace("%s", key))
    memory.path.chmod(0o600)
    opened(file, memory)
    assert len(readings) == 2


def test_a_memory_that_others_may_read_or_write_is_none(file, memory, readings):
    opened(file, memory)
    memory.path.chmod(0o666)
    opened(file, memory)
    assert len(readings) == 2
    assert memory.path.stat().st_mode & 0o777 == 0o600


def test_a_public_size_is_checked_against_what_is_remembered(file, memory):
    budget = PureDP(epsilon=1.0, relation="replace-one")
    sized = Schema(columns=SMALL.columns, label=SMALL.label, size=3)
    for _ in range(2):
        with pytest.raises(SchemaError, match="must be the true one"):
            Owner(file, schema=sized, dataset="rows", budget=budget, memory=memory)
