"""Files of questions and releases give one clear error and charge nothing; sizes and pictures of answers."""

import json
import os
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from privada import NearestCells, Owner, Schema
from privada.exceptions import InputError, PrivadaError, TamperError, WireError
from privada.methods.cells import CellStatistics
from privada.methods.cells.questions.partition import Bins, GridCells
from privada.methods.reweighting import ReweightingDescent
from privada.methods.transport import FeatureMap, RowRelease
from privada.privacy import ApproxDP, PureDP, Question, Release, wire

AR = "add/remove"
QUESTION = CellStatistics(
    tables=(NearestCells(centers=np.array([[0.2], [0.8]])),), guarantee=PureDP(epsilon=0.01, relation=AR)
)


@pytest.fixture(scope="module")
def owner():
    return Owner(
        np.full((9, 1), 0.1),
        schema=Schema.of_numbers(bounds=(0, 1), width=1),
        dataset="clinic",
        budget=PureDP(epsilon=1, relation=AR),
    )


@pytest.fixture(scope="module")
def release(owner):
    return owner.answer(QUESTION)


def header_of(blob):
    (length,) = struct.unpack("<Q", blob[:8])
    return json.loads(json.loads(blob[8 : 8 + length])["__metadata__"]["privada"])


def forged(blob, change, arrays=None):
    envelope = header_of(blob)
    change(envelope)
    arrays = {"0/centers": QUESTION.tables[0].centers} if arrays is None else arrays
    return save(arrays, metadata={"privada": json.dumps(envelope)})


def test_files_survive_the_wire(release, tmp_path):
    assert Question.load(QUESTION.save(tmp_path / "q")) == QUESTION
    loaded = Release.load(release.save(tmp_path / "r"))
    assert loaded.digest == release.digest
    assert np.array_equal(loaded["counts"], release["counts"])
    loaded.verify(question=QUESTION)
    assert not loaded["counts"].flags.writeable


def test_a_digest_is_of_everything():
    other = CellStatistics(
        tables=(NearestCells(centers=np.array([[0.2], [0.80001]])),), guarantee=QUESTION.guarantee
    )
    salted = CellStatistics(tables=QUESTION.tables, guarantee=QUESTION.guarantee, salt="2")
    dearer = CellStatistics(tables=QUESTION.tables, guarantee=PureDP(epsilon=0.02, relation=AR))
    assert len({QUESTION.digest, other.digest, salted.digest, dearer.digest}) == 4
    assert len({QUESTION, other, salted, dearer}) == 4


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 100, -8, -1])
def test_truncated_files(release, cut):
    for blob, read in ((QUESTION.to_bytes(), Question.from_bytes), (release.to_bytes(), Release.from_bytes)):
        with pytest.raises(WireError):
            read(blob[:cut])


@settings(max_examples=300)
@given(st.data())
def test_fuzzed_questions_are_read_right_or_refused(data):
    blob = bytearray(QUESTION.to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(Question.from_bytes(bytes(blob)), Question)
    except WireError:
        pass


@settings(max_examples=300)
@given(st.data())
def test_fuzzed_releases_are_never_believed(release, data):
    blob = bytearray(release.to_bytes())
    before = bytes(blob)
    place = data.draw(st.integers(0, len(blob) - 1))
    blob[place] ^= data.draw(st.integers(1, 255))
    try:
        read = Release.from_bytes(bytes(blob))
    except WireError:
        return
    assert read.digest == Release.from_bytes(before).digest, "only meaningless bytes may differ"


@settings(max_examples=100)
@given(st.binary(max_size=400))
def test_arbitrary_bytes(blob):
    for read in (Question.from_bytes, Release.from_bytes):
        with pytest.raises(WireError):
            read(blob)


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.update(kind="release"),
        lambda e: e.update(format=99),
        lambda e: e.update(header=[]),
        lambda e: e["header"].pop("guarantee"),
        lambda e: e["header"].update(question="os.system"),
        lambda e: e["header"].update(question="cells.nothing"),
        lambda e: e["header"].update(salt=7),
        lambda e: e["header"]["guarantee"].update(epsilon=-1),
        lambda e: e["header"]["guarantee"].update(epsilon="1"),
        lambda e: e["header"]["guarantee"].update(relation="none"),
        lambda e: e["header"]["parameters"].update(n_classes=1),
        lambda e: e["header"]["parameters"].update(unknown=1),
        lambda e: e["header"]["parameters"]["partitions"][0].update(form="pickle"),
        lambda e: e["header"]["parameters"].update(partitions=[]),
        lambda e: e["header"].update(extra="smuggled"),
    ],
)
def test_forged_questions(change):
    with pytest.raises(WireError):
        Question.from_bytes(forged(QUESTION.to_bytes(), change))


def test_smuggled_arrays_and_strange_types():
    centers = QUESTION.tables[0].centers
    same = lambda e: None  # noqa: E731
    assert Question.from_bytes(forged(QUESTION.to_bytes(), same)) == QUESTION
    for arrays in (
        {"0/centers": centers, "rows": centers},
        {"0/centers": centers.astype(np.float16)},
        {"0/centers": np.array([[np.nan], [0.8]])},
        {},
    ):
        with pytest.raises(WireError):
            Question.from_bytes(forged(QUESTION.to_bytes(), same, arrays))


def test_pickles_and_oversized_files_are_refused(tmp_path):
    with pytest.raises(WireError):
        Question.from_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(WireError, match="at most 10"):
        Question.from_bytes(QUESTION.to_bytes(), largest=10)
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(wire.LARGEST_FILE + 1)
    with pytest.raises(WireError, match="larger than"):
        Question.load(big)
    with pytest.raises(WireError, match="Cannot read"):
        Question.load(tmp_path / "absent")
    bomb = struct.pack("<Q", 2**63) + b"{}"
    with pytest.raises(WireError):
        Question.from_bytes(bomb)
    deep = b"[" * 100_000
    with pytest.raises(WireError):
        Question.from_bytes(struct.pack("<Q", len(deep)) + deep)


def test_nothing_was_charged_by_reading(owner):
    before = owner.ledger.spent("clinic")
    for blob in (b"", b"junk", QUESTION.to_bytes()[:50]):
        with pytest.raises(PrivadaError):
            owner.answer(Question.from_bytes(blob))
    assert owner.ledger.spent("clinic") == before


def test_verify_finds_another_key_question_and_receipt(owner, release):
    release.verify(public=owner.public_key)
    with pytest.raises(TamperError, match="another owner"):
        release.verify(public="00" * 32)
    salted = CellStatistics(tables=QUESTION.tables, guarantee=QUESTION.guarantee, salt="x")
    with pytest.raises(TamperError, match="another question"):
        release.verify(question=salted)


def test_releases_explain_their_noise(release):
    low, high = release.interval(confidence=0.99)["counts"]
    assert np.all(low < high)
    assert "±" in release.explain()
    assert "add/remove" in release.explain()
    with pytest.raises(InputError, match="holds counts, not 'sums'"):
        release["sums"]


@pytest.mark.statistical
def test_intervals_hold(owner):
    """40 releases of 2 counts: at 99 %, more than 6 misses of 80 has probability below 1e-4."""
    misses = 0
    cells = (NearestCells(centers=np.array([[0.2], [0.8]])),)
    for i in range(40):
        question = CellStatistics(tables=cells, guarantee=PureDP(epsilon=0.01, relation=AR), salt=str(i))
        low, high = owner.answer(question).interval(confidence=0.99)["counts"]
        misses += int(np.sum((low > [9, 0]) | (high < [9, 0])))
    assert misses <= 6


def test_a_device_without_end_a_pipe_and_a_folder_are_not_read(tmp_path):
    (tmp_path / "endless").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    messages = {
        "endless": "but a device",
        "pipe": "but a pipe",
        ".": "but a folder",
        "absent": "No such file",
    }
    for name, why in messages.items():
        with pytest.raises(WireError, match=rf"^Cannot read .*{why}"):
            wire.read(tmp_path / name)
    (tmp_path / "long").write_bytes(bytes(11))
    assert len(wire.read(tmp_path / "long", largest=11)) == 11
    with pytest.raises(WireError, match="larger than 10"):
        wire.read(tmp_path / "long", largest=10)


def test_a_release_is_saved_below_a_root_through_no_link(owner, tmp_path):
    cells = (NearestCells(centers=np.array([[0.2], [0.8]])),)
    question = CellStatistics(tables=cells, guarantee=PureDP(epsilon=0.01, relation=AR))
    (tmp_path / "elsewhere" / "clinic").mkdir(parents=True)
    (tmp_path / "releases").symlink_to(tmp_path / "elsewhere")
    for what in (question, owner.answer(question)):
        with pytest.raises(WireError, match="releases is a link"):
            what.save(tmp_path / "releases" / "clinic" / "a", root=tmp_path)
        what.save(tmp_path / "plain" / "clinic" / "a", root=tmp_path)
    assert not list((tmp_path / "elsewhere" / "clinic").iterdir())


# The size of an answer
PURE = PureDP(epsilon=1, relation="add/remove")
CLAIM = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")


def rows(size, components):
    return RowRelease(features=FeatureMap.random(4, components, seed=0), size=size, guarantee=CLAIM)


def test_an_answer_of_more_bytes_than_are_read_is_refused():
    """50 million numbers, 400 MB, were written, charged, and read by nobody."""
    large = rows(500_000, 100)
    assert large.answer_bytes > 400_000_000 > wire.LARGEST_FILE
    with pytest.raises(InputError, match="at most 268,435,456 bytes"):
        large.check_answer_size()
    rows(300_000, 100).check_answer_size()


def test_the_last_answer_that_is_admitted_can_be_read():
    """At the limit: bytes that `wire.unpack` still takes."""
    fits = (wire.LARGEST_FILE - rows(1, 1).answer_bytes) // 8 - 1
    question = rows(fits, 1)
    question.check_answer_size()
    header = {"guarantee": question.guarantee.to_dict(), "price": question.price.to_dict()}
    blob = wire.pack("release", header, {"rows": np.zeros((fits, 1))})
    assert len(blob) <= question.answer_bytes <= wire.LARGEST_FILE
    assert wire.unpack(blob, kind="release")[1]["rows"].shape == (fits, 1)
    with pytest.raises(InputError, match="bytes"):
        rows(fits + 100, 1).check_answer_size()


def test_an_answer_of_so_many_arrays_that_its_header_is_not_read_is_refused():
    question = ReweightingDescent(
        size=10,
        loss="squared",
        centre=np.zeros(1),
        spread=np.ones(1),
        limit=1.0,
        constant=1.0,
        bound=0.5,
        step_size=0.1,
        steps=60_000,
        guarantee=CLAIM,
    )
    assert question.answer_bytes < wire.LARGEST_FILE
    with pytest.raises(InputError, match="fewer arrays, got 60,000"):
        question.check_answer_size()


def test_counts_of_many_cells_are_counted():
    table = GridCells(factors=tuple(Bins(feature=j, edges=np.arange(99.0)) for j in range(3)))
    question = CellStatistics(tables=(table,), n_classes=5, guarantee=PURE)
    assert question.answer_shapes() == {"counts": (1_000_000, 5)}
    assert 40_000_000 < question.answer_bytes < 40_200_000


# Pictures
def released(**settings):
    pytest.importorskip("matplotlib")
    rows = np.random.default_rng(0).uniform(size=(100, 2))
    schema = Schema.of_numbers(bounds=(0, 1), width=2)
    owner = Owner(rows, schema=schema, dataset="rows", budget=PureDP(epsilon=9, relation="add/remove"))
    return owner.answer(CellStatistics(guarantee=PURE, **settings))


def test_counts_have_intervals_and_the_guarantee_stands_above(tmp_path):
    release = released(tables=(Bins(feature=0, edges=np.linspace(0.1, 0.9, 9)),))
    figure = release.plot()
    (axes,) = figure.axes
    assert "95%" in axes.get_title(loc="left")
    assert str(release.guarantee) in figure.get_suptitle()
    figure.savefig(tmp_path / "counts.png")


def test_every_array_has_a_panel():
    centers = np.random.default_rng(1).uniform(size=(80, 2))
    figure = released(tables=(NearestCells(centers=centers),), radius=1.0, width=2).plot(0.9)
    assert len([axes for axes in figure.axes if axes.get_title(loc="left")]) == 2


def test_a_release_without_noise_on_arrays_is_not_drawn():
    class Empty:
        noise = ()

        def interval(self, confidence):
            return {}

    with pytest.raises(InputError, match="no noisy array"):
        Release.plot(Empty(), 0.95)
