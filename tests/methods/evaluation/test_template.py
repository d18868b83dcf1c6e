"""The example study of evaluation finds what is true of its generated rows, and does without ONNX."""

import sys

import numpy as np
import pytest

from privada.exceptions import RehearsalWarning
from privada.methods.evaluation.template import template
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.studies import Study
from privada.studies.example import write_example


def test_the_model_is_worse_at_the_clinic_and_the_study_says_so(tmp_path, monkeypatch):
    for name in ("onnx", "onnxruntime", "skl2onnx"):
        monkeypatch.setitem(sys.modules, name, None)
    write_example(tmp_path, name="evaluation")
    study = Study.read(tmp_path / "study.toml")
    (ask,) = study.first_asks
    table = template().owners["clinic"].table
    true = np.mean(ask.question.hypothesis.codes(table.rows) == (table.labels == "ill"))
    with pytest.warns(RehearsalWarning):
        clinic = Owner.from_file(study.at_hand["clinic"], insecure_seed=0)
    found = run(study.inquiry, {"clinic": clinic})
    assert found.accuracy.low < true < found.accuracy.high
    assert found.accuracy.high < 0.85  # it is 0.87 where the model was trained
    assert len(found.calibration) == 4
