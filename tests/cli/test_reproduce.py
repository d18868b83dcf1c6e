import json

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
    assert "one of cells, clustering, core, marginals" in cli("reproduce", "everything", expect=2).stderr
    assert "--data: there is no folder" in cli("reproduce", "core", "--data", "nowhere", expect=2).stderr


def test_the_number_of_runs_is_the_experiments_own_the_quick_one_or_what_is_asked_for(cli, monkeypatch):
    from privada.experiments import cells

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
