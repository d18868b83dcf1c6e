"""Checks of paths name the option that fixes them."""

import pytest

from privada.cli.options import existing_file, existing_folder, new_file
from privada.exceptions import InputError


def test_files_and_folders_are_not_taken_for_each_other(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text("")
    assert existing_file(file, "STUDY") is file
    assert existing_folder(tmp_path, "--folder") is tmp_path
    with pytest.raises(InputError, match="^STUDY: there is no file"):
        existing_file(tmp_path, "STUDY")
    with pytest.raises(InputError, match="^--folder: there is no folder"):
        existing_folder(file, "--folder")


def test_a_new_file_is_neither_there_nor_without_a_folder(tmp_path):
    fresh = tmp_path / "owner.toml"
    assert new_file(fresh, "--out") is fresh
    assert not fresh.exists()
    fresh.write_text("mine")
    with pytest.raises(InputError, match="^--out: .* exists and is not overwritten"):
        new_file(fresh, "--out")
    with pytest.raises(InputError, match="^--out: there is no folder"):
        new_file(tmp_path / "deep" / "owner.toml", "--out")
