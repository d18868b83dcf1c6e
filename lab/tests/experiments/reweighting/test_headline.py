"""The whole command on generated domains."""

from dataclasses import replace

import pytest

from privada.exceptions import InputError
from privada.report.exhibit import Figure, write
from privada_lab.datasets import domain_pairs
from privada_lab.experiments import reweighting
from privada_lab.experiments.registry import experiment
from privada_lab.experiments.reweighting import contenders, curves, headline, tables


def test_the_experiment_needs_data():
    with pytest.raises(InputError, match="--data"):
        list(experiment("reweighting").run(runs=1, data=None, track=lambda items, _: items))


def test_ranks_are_by_mean_error_and_the_worst_counts():
    def set_of(ours, other):
        return {epsilon: {"other": [other, other], "ours": [ours, ours]} for epsilon in contenders.EPSILONS}

    *figures, table = headline._ranks({"a": set_of(1.0, 2.0), "b": set_of(2.0, 1.0)}, runs=2)
    assert [figure.value for figure in figures] == [2, 2]
    assert table.rows[0][2] == "ours"
    assert table.rows[2][2] == "other"


def test_small_sets_take_more_splits_than_were_asked_for(pair):
    def reader(folder, seed):
        return replace(pair, test=replace(pair.test, X=pair.test.X[:59], y=pair.test.y[:59]))

    assert headline._enough(reader, None, range(200, 210)) == range(200, 241)
    assert headline._enough(
        lambda folder, seed: replace(reader(folder, seed), classes=2), None, range(10)
    ) == range(170)
    assert headline._enough(lambda folder, seed: pair, None, range(200, 220)) == range(200, 220)
    assert headline._enough(reader, None, range(200, 201)) == range(200, 201)  # a quick run


def test_the_whole_command_ends_on_small_generated_sets(monkeypatch, tmp_path, two_classes, pair):
    """Every figure, table and curve, with generated domains in the places of the real ones."""

    def number(folder, seed, **how):
        return pair

    def classes(folder, seed, **how):
        return two_classes

    monkeypatch.setattr(headline, "REGRESSIONS", {"gas": number})
    monkeypatch.setattr(tables, "REGRESSIONS", {"gas": number})
    monkeypatch.setattr(tables, "_small_gas", number)
    monkeypatch.setattr(domain_pairs, "classifications", lambda folder: {"adult": classes})
    monkeypatch.setattr(domain_pairs, "gas", number)
    monkeypatch.setattr(domain_pairs, "reviews", number)
    monkeypatch.setattr(domain_pairs, "adult", classes)
    monkeypatch.setattr(domain_pairs, "review_pairs", lambda: [("a", "b")])
    for name, value in {
        "EPSILONS": (4.0,),
        "SIZES": (150, 300),
        "ADULT_SIZES": (150, 300),
        "STEPS": 20,
    }.items():
        monkeypatch.setattr(curves, name, value)
    found = list(reweighting.run(runs=1, data=tmp_path))
    named = [item.figure for item in found if isinstance(item, Figure)]
    assert named == [
        "gas_mse_vs_nonprivate_eps1",
        "gas_mse_vs_nonprivate_eps4",
        "gas_mse_vs_public_only_eps1",
        "worst_rank_among_private_baselines",
        "worst_rank_among_private_baselines_eps4",
        "cnvxadap_worst_relative_mse",
    ]
    (ranks,) = (item for item in found if getattr(item, "title", "").startswith("Private"))
    assert {"ours", "trivial: shift", "trivial: public ridge", "trivial: one sum"} < {
        row[2] for row in ranks.rows
    }
    titles = [item.title.split(":")[0] for item in found if not isinstance(item, Figure)]
    assert titles == [
        "Private methods",
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 4",
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Figure 4",
        "Theorem 4",
        "Extensions on gas",
        "Theorems 2, 4 and 5 as numbers",
    ]
    for item in found:
        if not isinstance(item, Figure):
            write(item, tmp_path)
    assert len(list(tmp_path.glob("*.csv"))) == len(titles)
