import json
import shutil

import pytest
from typer.testing import CliRunner

from privada.cli import app
from privada.privacy import Ledger, OwnerKey
from privada.studies.example import write_example


class Cli:
    """Call the command line in this process."""

    def __call__(self, *words, expect=0):
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="privada")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == expect, (result.exit_code, result.stdout, result.stderr)
        return result

    def json(self, *words, expect=0):
        return json.loads(self(*words, "--json", expect=expect).stdout)


@pytest.fixture
def cli():
    return Cli()


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
