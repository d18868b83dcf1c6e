"""Tables of the appendix: a row for each set, and no column that nobody filled."""

from privada_lab.experiments.clustering import Costs
from privada_lab.experiments.clustering.compared import ablation_tables, gaps, method_tables, run_times
from privada_lab.experiments.clustering.contenders import ablations, baselines


def filled(*methods):
    costs = Costs()
    for method, cost in (("ClusterT", 4.0), ("STC", 2.0), *((each, 3.0) for each in methods)):
        costs.add(method, 5, cost)
    return costs


def test_a_set_that_was_not_measured_is_left_out():
    table = gaps({"a": filled("pure"), "b": filled()}, {"ours": "pure", "theirs": "x"}, title="t")
    assert table.columns == ("set", "ours")
    assert table.rows == (("a", "50.0"),)


def test_every_ablation_has_a_column():
    names = [f"{name} {each}" for name in ablations() | baselines() for each in ("pure", "zcdp")]
    names += [f"{name} coreset {each}" for name in baselines() for each in ("pure", "zcdp")]
    costs = filled("printed NAS pure", "printed NNA pure", "printed NAS zcdp", "ClusterT coreset", *names)
    tables = {table.title: table for table in ablation_tables({"a": costs})}
    assert tables["NAS by its number t of neighbours"].columns[1:4] == (
        "t = 75, pure",
        "t = 150, pure",
        "t = 300, pure",
    )
    assert len(tables["NAS by its guarantee"].columns) == 4
    assert "NAS, C by its bound" in tables["With and without coreset, zcdp"].columns
    assert len(tables["Baselines with and without coreset, pure"].columns) == 2 + 2 * len(baselines())


def test_methods_and_times_stand_side_by_side():
    costs = filled("pure", "printed NNA pure", "uniform")
    costs.took("pure", 2.0)
    pure, zcdp = method_tables({"a": costs})
    assert pure.rows == (("a", "50.0", "50.0", "50.0"),)
    assert zcdp.columns == ("set", "uniform")
    assert run_times({"a": costs}, title="t").rows == (("a", "2.00"),)
