"""Files for others: whole or not at all, readable as the umask says, never through a link."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from privada.exceptions import WireError
from privada.privacy import wire
from privada.privacy._write import create, probe, remove_leftovers

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
        wire.plain_folder(tmp_path, "releases", "clinic")


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


def test_plain_folders(tmp_path):
    assert wire.plain_folder(tmp_path / "exchange", "releases", "clinic").is_dir()
    assert wire.plain_folder(tmp_path / "exchange", "releases", "clinic").is_dir()
    for part in ("", ".", "..", "a/b", "/etc"):
        with pytest.raises(WireError, match="Expected names of folders"):
            wire.plain_folder(tmp_path, "releases", part)


def test_the_same_without_handles_of_folders(tmp_path, monkeypatch):
    """Windows has no handles of folders: paths are looked at one by one."""
    monkeypatch.setattr("privada.privacy._write._HANDLES", False)
    wire.write(tmp_path / "releases" / "clinic" / "a", b"x", root=tmp_path)
    wire.write(tmp_path / "releases" / "clinic" / "b", b"x")
    make_link(tmp_path / "refused", tmp_path / "releases")
    for root in (tmp_path, None):
        with pytest.raises(WireError, match="refused is a link"):
            wire.write(tmp_path / "refused" / "a", b"x", root=root)
    with pytest.raises(WireError, match="a is a link or a file"):
        wire.plain_folder(tmp_path, "releases", "clinic", "a")


WRITE_AND_STOP = """
import sys, time
from pathlib import Path
from privada.privacy import _write
with _write._entered(Path(sys.argv[1]), ("r", "clinic"), follow=True) as folder:
    with _write._draft(Path(sys.argv[1], "r/clinic/a"), b"x" * 100, folder):
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

    lock, taken = fcntl.flock, []

    def late(handle, how):
        if not taken:
            taken.extend(tmp_path.rglob(".*.partial"))
            taken[0].unlink()
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
