"""``privada reproduce`` with the experiments of the lab."""

import json

import joblib

KEYS = {"figure", "value", "goal", "better", "beside", "runs"}


def test_figures_are_one_object_a_line(cli):
    lines = [json.loads(line) for line in cli("reproduce", "core", "--json").stdout.splitlines()]
    assert all(line.keys() - {"interval"} == KEYS for line in lines)
    table = {line["figure"]: line for line in lines}
    sigma = table["sigma_table_worst_relative_error"]
    assert sigma["value"] <= sigma["goal"] == 5e-5
    assert "sigma_table_worst_relative_error" in cli("reproduce", "core").stdout


def test_experiments_are_listed_and_unknown_ones_refused(cli):
    names = {row["name"] for row in cli.json("reproduce")["experiments"]}
    assert names >= {"cells", "core"}
    refusal = cli("reproduce", "everything", expect=2).stderr
    assert f"one of {', '.join(sorted(names))}, got 'everything'" in refusal
    assert "--data: there is no folder" in cli("reproduce", "core", "--data", "nowhere", expect=2).stderr


def test_a_data_folder_is_looked_through(cli, tmp_path):
    assert "files" not in cli.json("reproduce")
    (tmp_path / "ctg").mkdir()
    (tmp_path / "ctg" / "ctg.parquet").touch()
    found = {row["file"]: row for row in cli.json("reproduce", "--data", str(tmp_path))["files"]}
    assert found["ctg/ctg.parquet"] == {
        "file": "ctg/ctg.parquet",
        "there": "yes",
        "read by": "forecasts, marginals, tables",
    }
    assert found["wind/wind.parquet"]["there"] == "no"


def test_out_keeps_figures_numbers_and_a_picture_and_says_what_is_left_out(cli, tmp_path, monkeypatch):
    told = cli("reproduce", "core", "--json", "--out", str(tmp_path))
    assert (tmp_path / "figures.jsonl").read_text() == told.stdout
    assert {path.suffix for path in tmp_path.iterdir()} == {".jsonl", ".csv", ".svg"}
    assert not told.stderr
    monkeypatch.setattr("privada_lab.experiments.registry.find_spec", lambda name: None)
    told = cli("reproduce", "core", "--json", "--out", str(tmp_path))
    assert "left out" in told.stderr
    assert "privada[plot]" in told.stderr


def test_the_number_of_runs_is_the_experiments_own_the_quick_one_or_what_is_asked_for(cli, monkeypatch):
    from privada_lab.experiments import cells

    asked = []

    def run(*, runs, data, track):
        asked.append(runs)
        return iter(())

    monkeypatch.setattr(cells, "run", run)
    for more in ((), ("--quick",), ("--runs", "3")):
        cli("reproduce", "cells", *more, "--json")
    assert asked == [50, 5, 3]
    assert "runs to be a whole number >= 1" in cli("reproduce", "cells", "--runs", "0", expect=2).stderr
    assert "not both" in cli("reproduce", "cells", "--quick", "--runs", "3", expect=2).stderr
    assert len(asked) == 3


def test_processes_share_the_runs_of_experiments_that_can(cli, monkeypatch):
    told = []
    config = joblib.parallel_config
    monkeypatch.setattr(
        joblib,
        "parallel_config",
        lambda *backend, n_jobs: told.append(n_jobs) or config(*backend, n_jobs=n_jobs),
    )
    both = [cli("reproduce", "cells", "--runs", "2", "--jobs", jobs, "--json").stdout for jobs in "12"]
    figures = [[json.loads(line) for line in each.splitlines()] for each in both]
    exact = [[each for each in found if each["figure"].endswith("nonprivate")] for found in figures]
    assert exact[0]
    assert exact[0] == exact[1]
    assert told == [1, 2]
    assert "share the runs of cells" in cli("reproduce", "core", "--jobs", "2", expect=2).stderr
    assert "jobs to be a whole number >= 1" in cli("reproduce", "cells", "--jobs", "0", expect=2).stderr


def test_settings_of_tables_are_refused_elsewhere_and_checked(cli, monkeypatch):
    from privada_lab.experiments.tables import headline

    asked = []
    monkeypatch.setattr(headline, "measure", lambda unit: asked.append(unit) or [])
    cli("reproduce", "tables", "--quick", "--only", "wind", "--only", "shift", "--limit", "3", "--json")
    assert [(unit.pair, unit.todo, unit.limit) for unit in asked] == [
        ("wind: other months to January", (("shift", 1.0),), 3.0)
    ]
    assert "tables does" in cli("reproduce", "core", "--half", "final", expect=2).stderr
    assert "development, final" in cli("reproduce", "tables", "--half", "both", expect=2).stderr
