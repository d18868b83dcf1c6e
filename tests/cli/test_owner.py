import stat

import pytest

from privada import Owner
from privada.exceptions import BudgetError, StudyError

FILLED = {
    "relation": 'relation = "add/remove"',
    "epsilon": "epsilon = 2.0",
    "low": "low = 0",
    "high": "high = 10",
    "values": 'values = ["well", "ill"]',
}


def fill_in(path):
    """Replace one placeholder after the other; until the last one, loading fails and names it."""
    while 'FILL IN"  #' in (text := path.read_text()) or '"FILL IN"\n' in text:
        with pytest.raises(StudyError, match="FILL IN") as failed:
            Owner.from_toml(path)
        lines = text.splitlines()
        number = int(str(failed.value).split("line ")[1].split(",")[0])
        key = lines[number - 1].split(" = ")[0]
        assert 'FILL IN"' in lines[number - 1]
        lines[number - 1] = FILLED[key]
        path.write_text("\n".join(lines) + "\n")


def test_owner_init_then_fill_in_then_load(cli, home, tmp_path):
    folder = tmp_path / "north"
    done = cli.json("owner", "init", folder, "--data", home / "clinic/rows.csv", "--label", "outcome")
    assert stat.S_IMODE((folder / "owner.key").stat().st_mode) == 0o600
    assert len(done["public_key"]) == 64
    text = (folder / "owner.toml").read_text().replace('# values = ["a", "b"]', "# or values = [...]")
    label = text.index("[schema.label]")
    text = text[:label] + text[label:].replace('low = "FILL IN"', 'values = "FILL IN"', 1)
    text = text[:label] + "\n".join(line for line in text[label:].splitlines() if not line.startswith("high"))
    (folder / "owner.toml").write_text(text + "\n")
    fill_in(folder / "owner.toml")
    with pytest.raises(BudgetError, match="privada owner open-budget"):
        Owner.from_toml(folder / "owner.toml")
    opened = cli.json("owner", "open-budget", folder / "owner.toml")
    assert opened["dataset"] == "rows"
    assert cli.json("owner", "open-budget", folder / "owner.toml") == opened
    assert Owner.from_toml(folder / "owner.toml").dataset == "rows"


def test_types_come_from_parquet_and_values_from_nowhere(cli, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"age": [31, 77], "height": [1.71, 1.55], "ward": ["secret-a", "secret-b"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.parquet", "--name", "people")
    text = (tmp_path / "o/owner.toml").read_text()
    assert all(value not in text for value in ("31", "77", "1.71", "secret"))
    assert 'name = "people"' in text
    assert 'path = "../rows.parquet"' in text
    assert text.count('low = "FILL IN"') == 2
    assert text.count('values = "FILL IN"') == 1


def test_a_csv_gives_its_header_only(cli, tmp_path):
    (tmp_path / "rows.csv").write_text('age,"the ""ward"""\n31,secret\n')
    cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.csv")
    text = (tmp_path / "o/owner.toml").read_text()
    assert "secret" not in text
    assert r'name = "the \"ward\""' in text


def test_nothing_is_overwritten(cli, tmp_path):
    cli("owner", "init", tmp_path / "o")
    before = {path.name: path.read_bytes() for path in (tmp_path / "o").iterdir()}
    assert "not overwritten" in cli("owner", "init", tmp_path / "o", expect=2).stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "o").iterdir()} == before


def test_wrong_data(cli, tmp_path):
    missing = cli("owner", "init", tmp_path / "o", "--data", tmp_path / "none.csv", expect=2)
    assert "--data: there is nothing at" in missing.stderr
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    label = cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.csv", "--label", "c", expect=2)
    assert "--label to be one of a, b" in label.stderr
    (tmp_path / "rows.txt").write_text("a,b\n1,2\n")
    assert (
        "neither CSV nor Parquet"
        in cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.txt", expect=2).stderr
    )
    assert not (tmp_path / "o").exists()


def test_the_card_is_public_and_reads_back(cli, home):
    from privada.parties.owner_file import Card, OwnerFile

    cli("owner", "schema", home / "clinic/owner.toml", "--out", home / "schema.toml")
    file = OwnerFile.read(home / "clinic/owner.toml")
    assert Card.read(home / "schema.toml") == file.card()
    assert "PRIVATE" not in (home / "schema.toml").read_text()
    assert cli("owner", "schema", home / "clinic/owner.toml").stdout == (home / "schema.toml").read_text()


@pytest.mark.parametrize("name", ["patients ", "patients\u00a0", "ｐatients"])
def test_a_name_that_looks_the_same_is_the_same_budget(cli, home, edit, name):
    cli("run", home / "study.toml")
    edit("clinic/owner.toml", 'name = "patients"', f'name = "{name}"')
    edit("study.toml", "seed = 0", "seed = 1")
    cli("run", home / "study.toml")
    (shown,) = cli.json("ledger", "show", home / "clinic/ledger.sqlite", "--key", home / "clinic/owner.key")[
        "datasets"
    ].values()
    assert shown["left"] == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["patients2", "Patients"])
def test_another_name_is_an_error_and_never_a_new_budget(cli, home, edit, name):
    edit("clinic/owner.toml", 'name = "patients"', f'name = "{name}"')
    assert "it knows 'patients'" in cli("run", home / "study.toml", expect=3).stderr
    shown = cli.json("ledger", "show", home / "clinic/ledger.sqlite", "--key", home / "clinic/owner.key")
    assert list(shown["datasets"]) == ["patients"]


def test_a_budget_is_not_opened_under_a_name_that_differs_in_case_only(cli, home, edit):
    edit("clinic/owner.toml", 'name = "patients"', 'name = "Patients"')
    failed = cli("owner", "open-budget", home / "clinic/owner.toml", expect=5)
    assert "would be taken for it" in failed.stderr
