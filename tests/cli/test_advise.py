"""Advice: one method for a complete answer, a named option for what is missing."""

import pytest


@pytest.mark.parametrize(
    ("said", "method"),
    [
        (("--want", "model", "--private", "target", "--yours", "labelled"), "reweighting"),
        (("--want", "model", "--private", "target", "--yours", "unlabelled"), "marginals"),
        (("--want", "model", "--private", "source"), "transport"),
        (("--want", "points"), "clustering"),
        (("--want", "rows"), "summarization"),
        (("--want", "counts"), "cells"),
    ],
)
def test_a_complete_answer_names_one_method(cli, said, method):
    assert [each["name"] for each in cli.json("advise", *said)["methods"]] == [method]
    assert f"privada init DIR --method {method}" in cli("advise", *said).stdout


def test_a_model_is_scored_by_evaluation(cli):
    assert "privada init DIR --method evaluation" in cli("advise", "--want", "score").stdout


def test_what_is_missing_or_wrong_is_named(cli):
    assert "--want: say one of model, points" in cli("advise", expect=2).stderr
    assert "--private: say one of target, source" in cli("advise", "--want", "model", expect=2).stderr
    assert "want" in cli("advise", "--want", "money", expect=2).stderr
