"""Model files that version 0.2 wrote still load, and predict what they predicted then."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from privada.methods.models.model_file import unpack_model

ARCHIVE = Path(__file__).parent / "models-0.2.zip"
ROWS = np.random.default_rng(7).uniform(size=(20, 2))


def read(name):
    with zipfile.ZipFile(ARCHIVE) as archive:
        return archive.read(name)


PREDICTIONS = json.loads(read("predictions.json"))


@pytest.mark.parametrize("name", PREDICTIONS)
def test_an_old_model_predicts_as_it_did(name):
    model = unpack_model(read(f"{name}.privada"))
    predictions = model.predict(ROWS) if hasattr(model, "predict") else model.means_
    if np.asarray(PREDICTIONS[name]).dtype.kind == "f":
        assert np.allclose(predictions, PREDICTIONS[name])
    else:
        assert np.asarray(predictions).tolist() == PREDICTIONS[name]
    assert model.guarantee_.to_dict() == model.release_.guarantee.to_dict() or len(model.releases_) > 1
