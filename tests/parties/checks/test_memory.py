import json
import os
import time

import numpy as np
import pytest

from privada.exceptions import SchemaError
from privada.parties import Category, Number, Owner, Rows, Schema
from privada.parties.checks.memory import CheckMemory
from privada.privacy import PureDP

SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)], label=Category(name="y", values=("a", "b")))
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


def opened(data, memory, schema=SCHEMA, **rest):
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
    wider = Schema(columns=[Number(name="x", low=0, high=10)], label=SCHEMA.label)
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
    rows = Rows(file, schema=SCHEMA)
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
    sized = Schema(columns=SCHEMA.columns, label=SCHEMA.label, size=3)
    for _ in range(2):
        with pytest.raises(SchemaError, match="must be the true one"):
            Owner(file, schema=sized, dataset="rows", budget=budget, memory=memory)
