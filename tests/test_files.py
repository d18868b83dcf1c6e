"""Type and size come first: no device, pipe or folder is read, and nothing larger than its limit."""

import os
import socket
from pathlib import Path

import numpy as np
import pytest

from privada import _files
from privada._toml import Section
from privada.exceptions import InputError, LedgerError, SchemaError, StudyError
from privada.methods._public_rows import public_rows
from privada.parties.owner_file import Card, OwnerFile
from privada.parties.rows import Rows
from privada.parties.schema import Number, Schema
from privada.privacy import OwnerKey

TWO = Schema.of_numbers(bounds=(0, 9), width=2)


@pytest.fixture(params=["endless", "pipe", "socket", "folder", "absent", "long"])
def bad(request, tmp_path, monkeypatch):
    """A path that must not be read, and what is said of it."""
    path = tmp_path / request.param
    monkeypatch.setattr(_files, "LARGEST_TEXT", 100)
    if request.param == "endless":
        path.symlink_to("/dev/zero")
    elif request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        monkeypatch.chdir(tmp_path)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "long":
        with path.open("wb") as stream:
            stream.truncate(1 << 40)  # a hole: it takes no room on the disk, only in memory
    said = {"endless": "a device", "pipe": "a pipe", "socket": "a socket", "folder": "a folder"}
    return path, said.get(request.param, {"absent": "No such file", "long": "larger than"}.get(request.param))


@pytest.mark.parametrize("read", [Section.read, OwnerFile.read, Card.read])
def test_toml_files(bad, read):
    path, said = bad
    with pytest.raises(StudyError, match=said):
        read(path)


def test_public_rows_of_a_study(bad):
    path, said = bad
    section = Section.parse(f'centers = "{path.name}"', name="study.toml")
    with pytest.raises(StudyError, match=rf"study.toml, line 1, centers: .*{said}"):
        public_rows(section, "centers", path.parent, TWO)


def test_keys(bad):
    path, said = bad
    with pytest.raises(LedgerError, match=said):
        OwnerKey.load(path)


def test_benchmarks(bad):
    path, said = bad
    with pytest.raises(InputError, match=said):
        _files.plain_file(path, largest=_files.LARGEST_DATA)


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.parquet"])
def test_rows_are_not_read_from_a_pipe(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(SchemaError, match="neither a plain file nor a folder"):
        Rows(tmp_path / name, schema=Schema(columns=(Number(name="x", low=0.0, high=1.0),)))


def test_text_that_is_not_utf_8(tmp_path):
    (tmp_path / "study.toml").write_bytes(b"title = '\xff\xfe'")
    with pytest.raises(StudyError, match=r"^Cannot read study.toml: it is not text in UTF-8\.$"):
        Section.read(tmp_path / "study.toml")
    section = Section.parse('centers = "study.toml"', name="s.toml")
    with pytest.raises(StudyError, match="not text in the encoding utf-8"):
        public_rows(section, "centers", tmp_path, TWO)


def test_a_compressed_file_is_not_unpacked(tmp_path):
    """Reading by name would unpack it, to whatever size it unfolds."""
    import gzip

    (tmp_path / "centers.csv.gz").write_bytes(gzip.compress(b"0.5\n"))
    section = Section.parse('centers = "centers.csv.gz"', name="s.toml")
    with pytest.raises(StudyError, match="not text in the encoding utf-8"):
        public_rows(section, "centers", tmp_path, TWO)


def test_line_ends_of_any_system(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"0.5,1\r\n2,3\r\n")
    section = Section.parse('rows = "rows.csv"', name="s.toml")
    assert np.array_equal(public_rows(section, "rows", tmp_path, TWO), [[0.5, 1], [2, 3]])


def test_a_file_that_grows_is_cut_at_the_limit(tmp_path):
    (tmp_path / "file").write_bytes(bytes(11))
    assert len(_files.read_bytes(tmp_path / "file", largest=11)) == 11
    with pytest.raises(InputError, match="larger than 10"):
        _files.read_bytes(tmp_path / "file", largest=10)


def test_proc_files_have_no_size_and_are_still_bounded():
    """Files that say size 0 and give more."""
    if not Path("/proc/self/maps").exists():
        pytest.skip("needs /proc")
    with pytest.raises(InputError, match="larger than 10"):
        _files.read_bytes("/proc/self/maps", largest=10)
