"""A folder that others can write to: links, pipes, parts of files, and file systems without hard links."""

import errno
import os
import subprocess
import sys

import pytest

from privada.exceptions import CourierError, WireError
from privada.exchange.folder import FolderCourier


@pytest.fixture
def courier(tmp_path):
    made = FolderCourier(tmp_path / "exchange")
    made.put("q/clinic/a", b"question")
    return made


def names(folder):
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def secret(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(b"secret")
    return tmp_path / "elsewhere" / "secret"


def test_an_item_is_one_plain_file_and_nothing_else_stays(courier):
    assert (courier.path / "q/clinic/a").read_bytes() == b"question"
    assert names(courier.path / "q/clinic") == ["a"]


def test_links_are_neither_read_nor_listed(courier, secret):
    (courier.path / "q/clinic/b").symlink_to(secret)
    (courier.path / "q/other").symlink_to(secret.parent)
    with pytest.raises(WireError, match="a link"):
        courier.get("q/clinic/b")
    with pytest.raises(WireError, match="a link"):
        courier.get("q/other/secret")
    assert courier.keys("q/") == ["q/clinic/a"]
    with pytest.raises(WireError, match="link where a folder"):
        courier.keys("q/other/")


def test_nothing_is_written_through_a_link(courier, secret):
    (courier.path / "r").symlink_to(secret.parent)
    (courier.path / "q/clinic/b").symlink_to(secret)
    (courier.path / "q/clinic/c").symlink_to(secret.parent / "new")
    with pytest.raises(WireError, match="link or a file"):
        courier.put("r/x", b"bad")
    assert courier.put("q/clinic/b", b"bad") is False
    assert courier.put("q/clinic/c", b"bad") is False
    assert secret.read_bytes() == b"secret"
    assert names(secret.parent) == ["secret"]


def test_pipes_and_folders_are_no_items(courier):
    os.mkfifo(courier.path / "q/clinic/pipe")
    (courier.path / "q/clinic/folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(WireError, match="not a plain file|folder"):
            courier.get(f"q/clinic/{name}")
    assert courier.keys("q/") == ["q/clinic/a"]


def test_an_oversized_file_is_refused_before_it_is_read(courier):
    with (courier.path / "q/clinic/huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(WireError, match="larger than"):
        courier.get("q/clinic/huge")


def test_what_others_have_not_finished_is_not_listed(courier):
    for name in (".0b5e.partial", "b.tmp ", "c~", "d.", "é"):
        (courier.path / "q/clinic" / name).write_bytes(b"part")
    assert courier.keys("q/clinic/") == ["q/clinic/a"]


def test_an_item_is_no_folder(courier):
    assert courier.put("q/clinic", b"x") is False
    with pytest.raises(WireError, match="link or a file"):
        courier.put("q/clinic/a/b", b"x")
    with pytest.raises(WireError, match="in the way"):
        courier.get("q/clinic/a/b")


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_a_file_is_still_created_once(courier, monkeypatch, code):
    def no_links(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", no_links)
    assert courier.put("r/clinic/a", b"first") is True
    assert courier.put("r/clinic/a", b"second") is False
    assert courier.get("r/clinic/a") == b"first"
    assert names(courier.path / "r/clinic") == ["a"]


def test_a_full_disk_is_one_named_error_and_leaves_nothing(courier, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CourierError, match="No space left"):
        courier.put("q/clinic/b", b"x" * 100)
    monkeypatch.undo()
    assert names(courier.path / "q/clinic") == ["a"]


def test_without_handles_of_folders_links_are_refused_too(courier, secret, monkeypatch):
    from privada import _files
    from privada.privacy import wire

    monkeypatch.setattr(_files, "_HAS_FOLDER_HANDLES", False)
    monkeypatch.setattr(wire, "_HANDLES", False)
    (courier.path / "q/other").symlink_to(secret.parent)
    with pytest.raises(WireError, match="a link"):
        courier.get("q/other/secret")
    with pytest.raises(WireError, match="link or a file"):
        courier.put("q/other/new", b"x")
    assert courier.put("q/clinic/b", b"x")
    assert courier.put("q/clinic/b", b"y") is False
    assert courier.get("q/clinic/b") == b"x"


RACE = """
import sys
from privada.exchange.folder import FolderCourier
courier = FolderCourier(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(sum(courier.put(f"q/race/{each}", sys.argv[2].encode()) for each in range(100)))
"""


def test_of_two_processes_one_wins_each_item(courier):
    command = [sys.executable, "-c", RACE, str(courier.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, name], **pipes) for name in ("one", "two")]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    won = [int(writer.communicate(timeout=30)[0]) for writer in writers]
    assert sum(won) == 100
    found = [courier.get(key) for key in courier.keys("q/race/")]
    assert [found.count(b"one"), found.count(b"two")] == won
