"""Studies that learn a model: it is an estimator that was fitted, and can leave."""

import csv

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.method import methods
from privada.methods.models.model_file import load
from privada.methods.models.predicting import predict_table
from privada.studies import Study
from privada.studies.example import example_methods, write_example
from privada.studies.model import model_maker
from privada.studies.outcome import run_study

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
ABLE = [name for name in example_methods() if methods()[name].estimators]
PUBLIC = {  # rows of the study, to predict
    "cells": "centers.csv",
    "clustering": "homes.csv",
    "marginals": "source.csv",
    "reweighting": "source.csv",
    "transport": "target.csv",
}


def test_methods_that_learn_a_model_say_so():
    assert set(ABLE) == set(PUBLIC)


@pytest.mark.parametrize("name", ABLE)
def test_the_model_of_an_example_study_is_saved_and_predicts(name, tmp_path):
    write_example(tmp_path, name=name)
    study = Study.read(tmp_path / "study.toml")
    make = model_maker(study)
    outcome = run_study(study)
    model = make(outcome.learnt)
    assert model.guarantee_ == study.guarantee
    assert model.release_ in outcome.releases
    model.save(tmp_path / "model.privada")
    table = predict_table(tmp_path / "model.privada", tmp_path / PUBLIC[name])
    with (tmp_path / PUBLIC[name]).open() as file:
        assert len(table) == len(list(csv.reader(file)))
    again = load(tmp_path / "model.privada")
    assert list(again.feature_names_in_) == [column.name for column in study.schema.columns]
    rows = study.schema.decode(np.linspace(study.schema.box.low, study.schema.box.high, 20))
    assert np.array_equal(again.predict(rows), model.predict(rows))


def test_the_model_is_the_learners(tmp_path):
    write_example(tmp_path, name="reweighting")
    study = Study.read(tmp_path / "study.toml")
    make, outcome = model_maker(study), run_study(study)
    model = make(outcome.learnt)
    rows = np.linspace(study.schema.box.low, study.schema.box.high, 20)
    scores = np.clip(outcome.learnt.scores(rows)[:, 0], study.schema.label.low, study.schema.label.high)
    assert np.allclose(model.predict(study.schema.decode(rows)), scores)


@pytest.mark.parametrize("name", sorted(set(example_methods()) - set(ABLE)))
def test_other_studies_are_refused_before_anything_is_charged(name, tmp_path):
    write_example(tmp_path, name=name)
    with pytest.raises(InputError, match=f"A study of {name} learns no model; studies of cells"):
        model_maker(Study.read(tmp_path / "study.toml"))


def test_counts_that_no_classifier_is_made_of_are_refused(tmp_path):
    write_example(tmp_path, name="cells")
    study = tmp_path / "study.toml"
    study.write_text(study.read_text().replace("by_label = true", "by_label = false"))
    with pytest.raises(InputError, match="by_label = true"):
        model_maker(Study.read(study))
