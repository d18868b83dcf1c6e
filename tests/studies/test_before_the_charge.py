"""Whatever a learner can get wrong in a study is said before anything is charged."""

import re
import shutil
import tomllib

import pytest

from privada.exceptions import PrivadaError, RehearsalWarning
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.studies import Study
from privada.studies.example import example_methods, write_example

MORE = {
    "cells": ["radius"],
    "clustering": ["bound_share", "bound_neighbours"],
    "marginals": ["size"],
    "summarization": ["n_features", "validation_epsilon"],
    "transport": ["n_components", "norm_bound"],
}


def changed(study, key, value):
    """The text of a study with another value in its ``[method]`` table, which is the last."""
    head, _, table = study.partition("[method]\n")
    lines = [line for line in table.splitlines() if not re.match(rf"{key} *=", line)]
    return "\n".join([head, "[method]", *lines, f"{key} = {value}", ""])


def charges(home):
    """Number of charges on all ledgers of an example."""
    files = Study.read(home / "original.toml").at_hand.values()
    ledgers = [(file.open_ledger(), file.dataset) for file in files]
    return sum(line.kind == "charge" for ledger, dataset in ledgers for line in ledger.lines(dataset))


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
@pytest.mark.parametrize("value", ["-1", "1_000_000_000", '"nonsense"', "[]"])
@pytest.mark.parametrize("name", example_methods())
def test_a_wrong_value_is_refused_before_the_charge_or_not_at_all(name, value, tmp_path):
    write_example(tmp_path / "clean", name=name)
    study = (tmp_path / "clean/study.toml").read_text()
    keys = [key for key in tomllib.loads(study)["method"] if key not in ("name", "summary")]
    for key in [*keys, *MORE.get(name, [])]:
        home = shutil.copytree(tmp_path / "clean", tmp_path / key)
        (home / "original.toml").write_text(study)
        (home / "study.toml").write_text(changed(study, key, value))
        try:
            read = Study.read(home / "study.toml")
            with pytest.warns(RehearsalWarning):
                owners = {each: Owner.from_file(file, insecure_seed=0) for each, file in read.at_hand.items()}
            run(read.inquiry, owners)
        except PrivadaError:
            assert charges(home) == 0, f"{key} = {value} was charged and then refused"
