import time

from privada import Owner

WRONG = 'weight;outcome\n80,5;well\nmuch;ill\n90;"Mrs; Smith"\n'
CSV = '[data.csv]\ndelimiter = ";"\ndecimal = ","\n'


def made(cli, folder, text):
    folder.mkdir()
    (folder / "EXPORT.CSV").write_text(text)
    cli("owner", "init", folder / "o", "--data", folder / "EXPORT.CSV", "--delimiter", ";", "--decimal", ",")
    path = folder / "o/owner.toml"
    filled = path.read_text().replace('low = "FILL IN"', "low = 0").replace('high = "FILL IN"', "high = 200")
    filled = filled.replace('relation = "FILL IN"', 'relation = "add/remove"')
    filled = filled.replace('epsilon = "FILL IN"', "epsilon = 1.0")
    label = filled.rindex("[[schema.columns]]")
    path.write_text(filled[:label] + '[schema.label]\nname = "outcome"\nvalues = ["well", "ill"]\n')
    time.sleep(0.15)
    return path


def test_what_does_not_fit_is_counted_and_no_value_is_shown(cli, tmp_path):
    path = made(cli, tmp_path / "a", WRONG)
    done = cli("owner", "check", path, expect=6)
    assert "unparsable" in done.stdout
    assert "do not fit" in done.stdout
    assert "Smith" not in done.stdout + done.stderr
    assert "much" not in done.stdout + done.stderr
    found = cli.json("owner", "check", path, expect=6)
    assert found["columns"][0] == {"name": "weight", "unparsable": 1, "first_line": 3, "fits": False}
    assert found["columns"][1] == {"name": "outcome", "outside": 1, "fits": False}
    assert not (tmp_path / "a/o/rows.checked").exists()


def test_rows_that_fit_are_remembered(cli, tmp_path, monkeypatch):
    path = made(cli, tmp_path / "a", "weight;outcome\n80,5;well\n")
    cli("owner", "open-budget", path)
    assert CSV in path.read_text()
    found = cli.json("owner", "check", path)
    assert (found["fits"], found["remembered"], found["rows"]) == (True, True, 1)
    assert (tmp_path / "a/o/rows.checked").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr("privada.parties.rows.Rows.check", None)  # reading all rows again would fail
    assert Owner.from_toml(path).dataset == "EXPORT"
