"""Accuracies by method and pair: tabulated over the pairs that a method was run on; sources trained once.

That everybody is measured is tested beside the headline, on the same scores.
"""

from privada_lab.experiments import transport
from privada_lab.experiments.transport import accuracies


def test_a_table_leaves_out_what_was_not_run_and_counts_the_runs():
    scores = transport.Scores()
    scores.add("ours, eps 4", ("a", "b"), 90.0, 92.0)
    scores.add("ours, eps 4", ("b", "a"), 70.0, 72.0)
    scores.add("slow", ("b", "a"), 60.0)
    table = accuracies.table(scores, title="t")
    assert table.columns == ("method", "a to b", "b to a", "mean", "standard error", "runs")
    assert table.rows[0] == ("ours, eps 4", "91.0", "71.0", "81.00", "0.71", "2")
    assert table.rows[1] == ("slow", "", "60.0", "60.00", "0.00", "1")


def test_a_source_is_trained_once_for_all_targets_and_less_often_where_it_stands_beside(domains, monkeypatch):
    made = []
    monkeypatch.setattr(
        accuracies, "private_logistic", lambda side, **more: made.append((side.domain.name, more["epsilon"]))
    )
    trained = accuracies.Trained(runs=5)
    for case in transport.cases("googlenet", domains("googlenet", n=20)):
        for epsilon in (1.0, accuracies.MAIN):
            trained.logistic(case, epsilon)
    sources = {name for name, _ in made}
    assert len(sources) == 3
    for name in sources:
        assert made.count((name, accuracies.MAIN)) == 5
        assert made.count((name, 1.0)) == accuracies.FEW
