"""Every protocol on a small shift, and what is told of it."""

import pytest

from privada.exceptions import InputError
from privada.report.exhibit import Curves, Figure
from privada_lab.datasets.shift import digits_shift
from privada_lab.experiments.summarization import protocols as module


def test_every_protocol_is_scored_at_every_size(monkeypatch):
    monkeypatch.setattr(module, "SIZES", (20, 40))
    monkeypatch.setattr(module, "LAST", 40)

    def absent(*_, **__):
        raise InputError("no file")

    readers = {"digits": lambda _, **rest: digits_shift(**rest), "insurance": absent}
    monkeypatch.setattr(module, "READERS", readers)
    shown = list(module.run(runs=1, data="."))
    figures = {each.figure: each.value for each in shown if isinstance(each, Figure)}
    assert figures["digits_points_seen_herding"] == 1
    assert figures["digits_points_seen_rounds"] >= 1
    assert figures["digits_points_seen_printed"] > 1
    assert figures["digits_mmd2_greedy_p40"] < figures["digits_mmd2_uniform_p40"]
    assert figures["digits_svm_hashes_only_p40"] > 20
    rich = figures["digits_mmd2_rounds_large_budget_p40"]
    assert rich < figures["digits_mmd2_rounds_p40"], "the noise of the broadcasts is what costs"
    assert figures["digits_largest_kernel"] > 1e-9
    rows = [each for each in shown if isinstance(each, Curves)]
    assert [len(each.series) for each in rows] == [4, 5], "greedy is no increase over itself"


def test_it_says_that_it_needs_data():
    with pytest.raises(InputError, match="--data"):
        list(module.run(runs=1))
