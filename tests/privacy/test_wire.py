"""Files: the digest of a peeked header, limits on hostile headers, writing completely and through no link."""

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada import CellStatistics, NearestCells
from privada.exceptions import WireError
from privada.methods import methods
from privada.privacy import PureDP, Question, wire
from privada.privacy.wire import create, probe, remove_leftovers

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
            header = Question.peek(source)
            assert header.digest == question.digest
            assert (header.kind, header.method, header.guarantee) == (
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
    question = OutcomeTables(
        tables=bins, count="labels", round=1, rounds=3, salt="plan", guarantee=QUESTION.guarantee
    )
    header = Question.peek(question.to_bytes())
    assert (header.turn, header.salt) == ((1, 3), "plan")


# Writing
NOBODY = 65534


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize(
    ("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o002, 0o664, 0o775), (0o077, 0o600, 0o700)]
)
def test_modes_are_those_of_the_umask(tmp_path, umask, mask, file, folder):
    umask(mask)
    written = wire.write(tmp_path / "releases" / "clinic" / "a.release", b"all of it")
    below = wire.write(tmp_path / "refused" / "clinic" / "a.txt", b"no", root=tmp_path)
    for path in (written, below):
        assert path.stat().st_mode & 0o777 == file
        assert path.parent.stat().st_mode & 0o777 == folder
        assert path.parent.parent.stat().st_mode & 0o777 == folder


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
@pytest.mark.parametrize(("mask", "readable"), [(0o022, True), (0o077, False)])
def test_another_user_reads_what_is_meant_for_it(umask, mask, readable):
    import tempfile

    umask(mask)
    becomes = f"import os, sys; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})"
    reads = f"{becomes}; open(sys.argv[1], 'rb').read()"
    with tempfile.TemporaryDirectory() as home:  # pytest's own folders are closed to others
        exchange = Path(home, "exchange")
        exchange.mkdir()
        for folder in (Path(home), exchange):
            folder.chmod(0o755)
        path = wire.write(exchange / "questions" / "clinic" / "a.question", b"all of it", root=exchange)
        done = subprocess.run([sys.executable, "-S", "-c", reads, str(path)], capture_output=True, text=True)
    assert (done.returncode == 0) is readable, done.stderr
    assert readable or "PermissionError" in done.stderr


def test_a_file_is_replaced_whole(tmp_path):
    path = wire.write(tmp_path / "a", b"one")
    assert wire.read(wire.write(path, b"two")) == b"two"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_nothing_is_left_of_a_write_that_failed(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    wire.write(tmp_path / "a", b"one")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        wire.write(tmp_path / "a", b"two")
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"one"


def make_link(path, to):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to, target_is_directory=True)


@pytest.mark.parametrize("root", [True, False])
def test_a_linked_folder_is_refused(tmp_path, root):
    (tmp_path / "elsewhere").mkdir()
    make_link(tmp_path / "exchange" / "releases" / "clinic", tmp_path / "elsewhere")
    with pytest.raises(WireError, match="clinic is a link or a file where a folder should be"):
        wire.write(
            tmp_path / "exchange" / "releases" / "clinic" / "a.release",
            b"x",
            root=tmp_path / "exchange" if root else None,
        )
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_link_further_up_is_refused_below_the_root(tmp_path):
    (tmp_path / "elsewhere" / "clinic").mkdir(parents=True)
    make_link(tmp_path / "exchange" / "releases", tmp_path / "elsewhere")
    with pytest.raises(WireError, match="releases is a link or a file"):
        wire.write(
            tmp_path / "exchange" / "releases" / "clinic" / "a.release", b"x", root=tmp_path / "exchange"
        )
    assert not list((tmp_path / "elsewhere" / "clinic").iterdir())


def test_the_root_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    make_link(tmp_path / "exchange", tmp_path / "real")
    wire.write(tmp_path / "exchange" / "releases" / "a", b"x", root=tmp_path / "exchange")
    assert (tmp_path / "real" / "releases" / "a").read_bytes() == b"x"


@pytest.mark.parametrize("root", [True, False])
def test_a_plain_file_in_the_way_is_named(tmp_path, root):
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "clinic").write_text("here I stand")
    with pytest.raises(WireError, match="clinic is a link or a file where a folder should be"):
        wire.write(tmp_path / "releases" / "clinic" / "a", b"x", root=tmp_path if root else None)
    with pytest.raises(WireError, match="clinic is a link or a file"):
        wire.probe(tmp_path / "releases" / "clinic", root=tmp_path)


def test_a_target_that_is_no_plain_file_is_refused(tmp_path):
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "folder", "pipe"):
        with pytest.raises(WireError, match=f"{name} is there and is not a plain file"):
            wire.write(tmp_path / name, b"x")
    assert (tmp_path / "kept").read_text() == "kept"
    assert not (tmp_path / "absent").exists()


def test_a_path_outside_of_its_root_is_refused(tmp_path):
    for path in (tmp_path / "b" / "x", tmp_path / "a" / ".." / "b" / "x", tmp_path / "a"):
        with pytest.raises(WireError, match="Expected a path below a"):
            wire.write(path, b"x", root=tmp_path / "a")


def test_the_same_without_handles_of_folders(tmp_path, monkeypatch):
    """Windows has no handles of folders: paths are looked at one by one."""
    monkeypatch.setattr("privada.privacy.wire._HANDLES", False)
    wire.write(tmp_path / "releases" / "clinic" / "a", b"x", root=tmp_path)
    wire.write(tmp_path / "releases" / "clinic" / "b", b"x")
    make_link(tmp_path / "refused", tmp_path / "releases")
    for root in (tmp_path, None):
        with pytest.raises(WireError, match="refused is a link"):
            wire.write(tmp_path / "refused" / "a", b"x", root=root)
    with pytest.raises(WireError, match="a is a link or a file"):
        wire.probe(tmp_path / "releases" / "clinic" / "a", root=tmp_path)


WRITE_AND_STOP = """
import sys, time
from pathlib import Path
from privada.privacy import wire
with wire._open_folder(Path(sys.argv[1]), ("r", "clinic"), follow=True) as folder:
    with wire._draft(Path(sys.argv[1], "r/clinic/a"), b"x" * 100, folder):
        print("writing", flush=True)
        time.sleep(60)
"""


def hidden(root):
    return sorted(path.name for path in (root / "r/clinic").glob(".*"))


@pytest.mark.skipif(os.name != "posix", reason="without locks nothing is removed")
def test_what_a_killed_process_was_writing_is_removed_and_what_is_being_written_is_not(tmp_path):
    """SIGKILL leaves the hidden file; two other processes are at work meanwhile."""
    command = [sys.executable, "-c", WRITE_AND_STOP, str(tmp_path)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "writing\n"
        assert len(hidden(tmp_path)) == 3
        remove_leftovers(tmp_path, ["r"])
        assert len(hidden(tmp_path)) == 3
        writers[0].kill()
        writers[0].wait()
        remove_leftovers(tmp_path, ["r"])
        assert len(hidden(tmp_path)) == 2
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()
    remove_leftovers(tmp_path, ["r", "clinic"])
    assert hidden(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="without locks nothing is removed")
def test_what_others_write_and_other_hidden_files_stay(tmp_path, monkeypatch):
    folder = tmp_path / "r/clinic"
    folder.mkdir(parents=True)
    others = [f".{'0' * 16}-{'1' * 24}.partial", f".{'2' * 24}.partial"]
    for name in (*others, ".notes", ".partial", "a.partial"):
        (folder / name).write_bytes(b"part")
    (folder / f".{'3' * 24}.partial").symlink_to(folder / ".notes")
    everything = hidden(tmp_path)
    remove_leftovers(tmp_path, ["r"])
    assert hidden(tmp_path) == everything, "another machine, or an earlier version, may be writing them"
    for name in (*others, ".notes"):
        os.utime(folder / name, (0, 0))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    remove_leftovers(tmp_path, ["r"])
    assert hidden(tmp_path) == everything, "they are another user's"
    monkeypatch.undo()
    remove_leftovers(tmp_path, ["r"])
    assert hidden(tmp_path) == sorted(set(everything) - set(others)), "nobody writes for a day"
    remove_leftovers(tmp_path, ["absent"])
    remove_leftovers(tmp_path / "absent", ["r"])


def test_a_draft_that_is_taken_for_a_leftover_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    import fcntl

    lock, removed = fcntl.flock, []

    def late(handle, how):
        if not removed:
            removed.extend(tmp_path.rglob(".*.partial"))
            removed[0].unlink()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert create(tmp_path / "r/a", b"whole", root=tmp_path)
    assert (tmp_path / "r/a").read_bytes() == b"whole"
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["a"]


def test_a_probe_leaves_nothing_and_names_what_is_in_the_way(tmp_path):
    probe(tmp_path / "r/clinic", root=tmp_path)
    assert list((tmp_path / "r/clinic").iterdir()) == []
    (tmp_path / "r/link").symlink_to(tmp_path)
    with pytest.raises(WireError, match="link is a link"):
        probe(tmp_path / "r/link", root=tmp_path)
