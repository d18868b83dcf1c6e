"""Headers that are read first: the digest of the whole file, and no more work than a public limit."""

import json
import os
import struct
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada import CellStatistics, NearestCells
from privada.exceptions import WireError
from privada.methods import methods
from privada.privacy import PureDP, Question, wire

QUESTION = CellStatistics(
    tables=(NearestCells(centers=np.array([[0.2], [0.8]])),),
    guarantee=PureDP(epsilon=0.01, relation="add/remove"),
)


def written(outer, data=b""):
    """A file with this outer header, whatever it says."""
    text = outer if isinstance(outer, bytes) else json.dumps(outer).encode()
    return struct.pack("<Q", len(text)) + text + data


def split(blob):
    (length,) = struct.unpack("<Q", blob[:8])
    return json.loads(blob[8 : 8 + length]), blob[8 + length :]


def changed(change, data=None):
    """The question's file after a change of its envelope."""
    outer, own = split(QUESTION.to_bytes())
    envelope = json.loads(outer["__metadata__"]["privada"])
    change(envelope)
    outer["__metadata__"]["privada"] = json.dumps(envelope)
    return written(outer, own if data is None else data)


@pytest.mark.parametrize("name", list(methods()))
def test_the_digest_is_that_of_the_question_for_every_method(name, tmp_path):
    for case in methods()[name].example().single_cases:
        (question,) = case.questions
        for source in (question.to_bytes(), question.save(tmp_path / "q")):
            found = Question.peek(source)
            assert found.digest == question.digest
            assert (found.kind, found.method, found.guarantee) == (
                question.kind,
                question.method,
                question.guarantee,
            )


def test_arrays_of_all_kinds_and_shapes_have_the_digest_that_they_have_when_read():
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.zeros((0, 5), dtype=np.float32),
        "c": np.array([True, False]),
        "d": np.array([1, 2], dtype=np.uint8),
        "e": np.array([[1], [2]], dtype=np.int32),
        "f": np.array(7, dtype=np.int64),
    }
    blob = wire.pack("question", {"x": [1, 2.5, None, "é"]}, arrays)
    assert wire.peek(blob, kind="question").digest == wire.digest(*wire.unpack(blob, kind="question"))


@settings(max_examples=300)
@given(st.data())
def test_what_is_read_as_a_question_has_the_digest_that_was_announced(data):
    blob = bytearray(QUESTION.to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        question = Question.from_bytes(bytes(blob))
    except WireError:
        question = None
    try:
        header = Question.peek(bytes(blob))
    except WireError:
        assert question is None
        return
    assert question is None or question.digest == header.digest


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 100, -8, -1])
def test_truncated_files(cut):
    with pytest.raises(WireError):
        Question.peek(QUESTION.to_bytes()[:cut])


DEEP = "[" * 100 + "]" * 100


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e["header"].update(parameters=json.loads(DEEP)),
        lambda e: e["header"].update(parameters={"n": 10**200}),
        lambda e: e["header"].update(parameters={"n": [0] * 600_000}),
        lambda e: e["header"].update(parameters={"n": float("nan")}),
        lambda e: e["header"].update(parameters=[]),
        lambda e: e["header"].update(question="\x1b[2J.sums"),
        lambda e: e["header"].update(question="c" * 10_000),
        lambda e: e["header"].update(question=["cells"]),
        lambda e: e["header"].update(salt="s" * 201),
        lambda e: e["header"].update(guarantee={"kind": "pure"}),
        lambda e: e["header"]["guarantee"].update(epsilon=10**30 * -1),
        lambda e: e["header"].pop("guarantee"),
        lambda e: e.update(kind="release"),
        lambda e: e.update(format=2),
    ],
)
def test_headers_beyond_the_limits(change):
    with pytest.raises(WireError):
        Question.peek(changed(change))


@pytest.mark.parametrize(
    "text", [b"[" * 2_000_000, b'{"a": ' + b"9" * 1_000_000 + b"}", b"\xff" * 100, b'"a"', b"1"]
)
def test_a_hostile_header_takes_no_time(text):
    began = time.process_time()
    for blob in (written(text), written({"__metadata__": {"privada": text.decode("latin-1")}})):
        for read in (Question.peek, Question.from_bytes):
            with pytest.raises(WireError):
                read(blob)
    assert time.process_time() - began < 5


def test_arrays_that_lie_on_each_other_are_hashed_once():
    """Ten thousand names for the same megabyte would be ten gigabytes of work."""
    outer, _ = split(QUESTION.to_bytes())
    data = bytes(2**20)
    spec = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    outer = {"__metadata__": outer["__metadata__"]} | {f"a{i}": spec for i in range(10_000)}
    began = time.process_time()
    with pytest.raises(WireError, match="truncated or forged"):
        Question.peek(written(outer, data))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "spec",
    [
        {"shape": [2, 1], "data_offsets": [0, 8]},
        {"shape": [2, 1], "data_offsets": [0, 16, 16]},
        {"shape": [2, 1], "data_offsets": [16, 0]},
        {"shape": [2, 1], "data_offsets": [8, 24]},
        {"shape": [-2, -1], "data_offsets": [0, 16]},
        {"shape": [2.0, 1], "data_offsets": [0, 16]},
        {"shape": [True, 2], "data_offsets": [0, 16]},
        {"shape": [2] + [1] * 100, "data_offsets": [0, 16]},
        {"shape": "ab", "data_offsets": [0, 16]},
        {"shape": [2, 1]},
        {"shape": [1, 1], "data_offsets": [0, 8]},
    ],
)
def test_forged_places_of_arrays(spec):
    outer, data = split(QUESTION.to_bytes())
    (name,) = [name for name in outer if name != "__metadata__"]
    outer[name] = {"dtype": "F64"} | spec
    with pytest.raises(WireError):
        Question.peek(written(outer, data))


def test_only_plain_files_of_a_limited_size_are_read(tmp_path):
    path = QUESTION.save(tmp_path / "q")
    with pytest.raises(WireError, match="at most 100 are read"):
        Question.peek(path, largest=100)
    with pytest.raises(WireError, match="at most 100 are read"):
        Question.peek(path.read_bytes(), largest=100)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(WireError, match="not a plain file"):
            Question.peek(place)
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(WireError, match="Cannot read"):
            Question.peek(place)


def test_a_round_of_a_plan_says_so():
    from privada.methods.cells import Bins
    from privada.methods.marginals import OutcomeTables

    bins = (Bins(feature=0, edges=np.array([0.0])),)
    asked = OutcomeTables(
        tables=bins, count="labels", round=1, rounds=3, salt="plan", guarantee=QUESTION.guarantee
    )
    found = Question.peek(asked.to_bytes())
    assert (found.turn, found.salt) == ((1, 3), "plan")
