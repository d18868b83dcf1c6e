"""Everybody is measured, and tabulated by pair."""

from privada.lab.experiments.transport import accuracies
from privada.report.tables import Table


def test_everybody_is_measured(scores):
    for method in ("ours", "same release, no transport", "DP logistic", "DP logistic, propagated"):
        for epsilon in accuracies.EPSILONS:
            assert len(scores.found[accuracies.named(method, epsilon)]) == 6
    names = " ".join(scores.found)
    for method in (
        "PATE",
        "as printed",
        "made sound",
        "OTDA 0.2, propagated",
        "target only",
        "1 label a class",
    ):
        assert method in names
    small = scores.found[accuracies.named("DPDA made sound", 20.0)]
    assert {source for source, _ in small} == {"dslr", "webcam"}
    assert scores.mean("ours, eps 8") > 50 > scores.mean("PATE, eps 4")
    found = accuracies.table(scores, title="t")
    assert isinstance(found, Table)
    assert len(found.columns) == 1 + 6 + 3
