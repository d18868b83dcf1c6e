import shutil

import pytest

from privada.studies.example import write_example


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """What ``privada init`` writes; not to be changed."""
    folder = tmp_path_factory.mktemp("study")
    write_example(folder)
    return folder


@pytest.fixture
def home(written, tmp_path):
    """A fresh copy, to be spent."""
    return shutil.copytree(written, tmp_path / "home")
