import shutil

import pytest

from privada.privacy import Ledger, OwnerKey
from privada.studies.example import write_example


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    write_example(folder)
    return folder


@pytest.fixture
def home(example, tmp_path):
    """A fresh copy of what ``privada init`` writes."""
    return shutil.copytree(example, tmp_path / "home")


@pytest.fixture
def new_ledger(home):
    """Give the example's clinic a ledger without a budget, as before it was opened."""

    def make():
        for file in (home / "clinic").glob("*ledger.sqlite*"):
            file.unlink()
        Ledger.open(home / "clinic/ledger.sqlite", OwnerKey.load(home / "clinic/owner.key")).close()

    return make


@pytest.fixture
def edit(home):
    """Replace text in a file of the example; the text must be there."""

    def change(name, before, after):
        text = (home / name).read_text(encoding="utf-8")
        assert before in text
        (home / name).write_text(text.replace(before, after, 1), encoding="utf-8")

    return change


@pytest.fixture
def exchange(tmp_path):
    return tmp_path / "exchange"


@pytest.fixture
def learner(home, cli):
    """A learner who has only the owner's card."""
    cli("owner", "schema", home / "clinic/owner.toml", "--out", home / "schema.toml")
    text = (home / "study.toml").read_text().replace('owner = "clinic/owner.toml"', 'schema = "schema.toml"')
    (home / "study.toml").write_text(text)
    return home / "study.toml"
