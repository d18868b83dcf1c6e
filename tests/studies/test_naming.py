"""Names in results: every method's example study, run once."""

import json

import pytest
from typer.testing import CliRunner

from privada.cli import app
from privada.methods.method import methods
from privada.studies.naming import name_axes
from privada.studies.study import Study

ROOMS = sorted(name for name, card in methods().items() if card.has_part("template"))
NAMED = {  # what must carry names, in the plain result
    "cells": lambda result: result["tables"][0]["low"]["ill"],
    "clustering": lambda result: next(iter(result["centers"].values())),
    "marginals": lambda result: result["class shares of the synthetic target"],
    "transport": lambda result: result["prior"],
    "reweighting": lambda result: result["coef"],
    "summarization": lambda result: result["suitable"],
    "evaluation": lambda result: result["recall"],
}


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
@pytest.mark.parametrize("room", ROOMS)
def test_every_result_carries_names_budget_relation_and_noise(room, tmp_path):
    call = lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)  # noqa: E731
    assert call("init", tmp_path / "study", "--method", room).exit_code == 0
    study = tmp_path / "study/study.toml"
    schema, promised = Study.read(study).schema, str(Study.read(study).guarantee)
    done = call("run", study, "--json", "--page", tmp_path / "result.html")
    assert done.exit_code == 0, done.output
    plain = json.loads(done.stdout)
    assert plain["names"]["features"] == list(schema.features)
    assert plain["budget"] == promised
    for release in plain["releases"]:
        assert plain["guarantee"]["relation"] in release["promise"]
        assert all(note["within"] is None or note["within"] > 0 for note in release["noise"].values())
        assert release["noise"]
    named = NAMED[room](plain["result"]) if room in NAMED else plain["result"]
    known = {*schema.features, *plain["names"]["classes"], *plain["names"]["owners"]}
    assert isinstance(named, dict)
    assert known & set(named) or all(any(name in key for name in known) for key in named)
    page = (tmp_path / "result.html").read_text(encoding="utf-8")
    assert plain["budget"] in page
    assert all(name in page for name in named)


def test_a_list_of_another_length_than_its_names_is_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        name_axes([1, 2, 3], (("a", "b"),))
    assert name_axes(None, (("low", "high"),)) is None
