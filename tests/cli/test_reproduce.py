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
