"""The guided way at a terminal: wrong answers are asked again, and nothing is read from the rows."""

import pytest
from typer.testing import CliRunner

from privada.cli import app
from privada.parties.owner_file import OwnerFile


def init(folder, *words, said):
    call = ["owner", "init", str(folder / "o"), "--data", str(folder / "rows.csv"), "--ask", *words]
    return CliRunner().invoke(app, call, input="\n".join(said) + "\n", prog_name="privada")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows.csv").write_text("age,city,ill\n734511,Atlantis,maybe\n")
    return tmp_path


RIGHT = [
    "add/remove",
    "2",
    "",
    "",
    "ill",
    "integer",
    "0",
    "120",
    "n",
    "category",
    "A; B",
    "y",
    "boolean",
    "n",
]


def test_answers_make_an_owner(folder):
    result = init(folder, said=RIGHT)
    assert result.exit_code == 0, result.output
    file = OwnerFile.read(folder / "o/owner.toml")
    assert str(file.budget) == "ε = 2 (pure), add/remove one row"
    assert file.schema.label.name == "ill"
    assert "open the budget, once" in result.output


def test_wrong_answers_are_asked_again(folder):
    said = [
        "both",
        "add/remove",
        "-1",
        "2",
        "3",
        "",
        "gone",
        "",
        "ill",
        "number",
        "9",
        "1",
        "n",
        "0",
        "9",
        "n",
    ]
    result = init(folder, said=[*said, "left out", "boolean", "n"])
    assert result.exit_code == 0, result.output
    for part in ("got 'both'", "epsilon > 0", "delta", "got 'gone'", "age"):
        assert part in result.output
    assert OwnerFile.read(folder / "o/owner.toml").schema.features == ("age",)


def test_no_value_of_the_rows_is_shown(folder):
    result = init(folder, said=RIGHT)
    text = result.output + (folder / "o/owner.toml").read_text()
    assert not any(value in text for value in ("734511", "Atlantis", "maybe"))


def test_what_becomes_public_has_a_warning_beside_it(folder):
    said = ["replace-one", "2", "", "city", "3", "100", "", "number", "0", "9", "n", "boolean", "n"]
    output = init(folder, said=said).output
    for beginning in (
        "Public. Use what you knew",
        "Public. A number that you publish",
        "Public. What you decide",
    ):
        assert beginning in output


def test_an_end_in_the_middle_writes_nothing(folder):
    result = init(folder, said=RIGHT[:5])
    assert result.exit_code != 0
    assert not (folder / "o").exists()


def test_asking_needs_columns(folder):
    result = CliRunner().invoke(app, ["owner", "init", str(folder / "x"), "--ask"], prog_name="privada")
    assert result.exit_code != 0
    assert "--data or --database" in result.output + result.stderr
