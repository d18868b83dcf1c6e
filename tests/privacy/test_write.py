"""Files for others: whole or not at all, readable as the umask says, never through a link."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from privada.exceptions import WireError
from privada.privacy import wire

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
