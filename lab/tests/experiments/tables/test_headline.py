"""A stopped run goes on where it was."""

import pytest

from privada.exceptions import InputError
from privada.report.exhibit import Dots
from privada_lab.datasets.tables import table_pair, table_pairs
from privada_lab.experiments.registry import untracked
from privada_lab.experiments.tables import Results, headline, run
from privada_lab.experiments.tables.results import append

CANCER = "cancer: smooth to rough"


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    settings = {"runs": 1, "data": None, "half": "development", "quick": True, "out": tmp_path}
    only = (CANCER, "class shares", "public logistic", "ReweightedClassifier")
    found = list(run(**settings, only=only))
    values = {getattr(each, "figure", None): each for each in found}
    assert values["regret_worst_reweighting"].value > 0
    (picture,) = (each for each in found if isinstance(each, Dots))
    assert picture.places == (CANCER,)
    assert picture.methods["reweighting_classifier"] == [values["regret_worst_reweighting"].value]
    assert len(Results.read(tmp_path).records) == 3
    asked = []
    monkeypatch.setattr(headline, "measure", lambda unit: asked.append(unit) or [])
    again = list(run(**settings, only=only))
    assert asked == []
    assert {each.figure: each for each in again if hasattr(each, "figure")} == {
        name: each for name, each in values.items() if name
    }
    list(run(**settings, only=(CANCER, "noisy majority")))
    assert [unit.todo for unit in asked] == [
        (("noisy majority", 1.0), ("transport: noisy majority", 1.0)),
    ]
    with pytest.raises(InputError, match="--only"):
        list(run(**settings, only=("no such thing",)))


def test_a_quick_look_is_at_development_pairs_unless_told_otherwise(monkeypatch):
    asked = []
    monkeypatch.setattr(headline, "measure", lambda unit: asked.append(unit) or [])
    list(run(runs=1, data=None, quick=True))
    assert {table_pair(unit.pair).half for unit in asked} == {"development"}
    assert all(unit.limit for unit in asked)
    asked.clear()
    list(run(runs=2, data=None))
    assert {table_pair(unit.pair).half for unit in asked} == {"final"}
    assert len(asked) == 2 * len(table_pairs("final"))
    assert not any(unit.limit for unit in asked)


def test_a_stopped_run_shows_what_is_there(tmp_path, monkeypatch, record):
    append(tmp_path, record("ReweightedClassifier", 0.2))
    append(tmp_path, record("public logistic", 0.1))

    def stop(unit):
        raise KeyboardInterrupt

    monkeypatch.setattr(headline, "measure", stop)
    found = list(run(runs=1, data=None, quick=True, out=tmp_path, track=untracked))
    assert "regret_worst_reweighting" in {getattr(each, "figure", None) for each in found}
