"""The experiment's parts on generated domains."""

from importlib.util import find_spec

import numpy as np
import pytest

from privada.datasets.domain_pairs import drifting
from privada.exceptions import InputError
from privada.experiments import reweighting
from privada.experiments.registry import experiment


@pytest.fixture(scope="module")
def pair():
    return drifting(3, domains=4, rows=450, n=300, d=5)


def test_the_experiment_needs_data():
    with pytest.raises(InputError, match="--data"):
        list(experiment("reweighting").run(runs=1, data=None, track=lambda items, _: items))


def test_ours_is_ahead_of_every_private_baseline_on_drifting_domains(pair):
    ours = reweighting.ours(pair, 4.0)
    errors = {
        name: np.mean((predicted - pair.test.y) ** 2)
        for name, predicted in reweighting.private_baselines(pair, 4.0)
    }
    assert len(errors) == 5 + 2 * (find_spec("opacus") is not None)
    assert ours < min(errors.values())


def test_table_one_has_every_method(pair):
    errors = dict(reweighting.table_errors(pair))
    assert set(errors) == {"target", "KMM", "DM", "CnvxAdap"}
    assert errors["CnvxAdap"] < 1.1 * errors["target"]


def test_settings_come_from_public_rows_alone(pair):
    from dataclasses import replace

    settings = reweighting.public_settings(pair)
    assert settings == reweighting.public_settings(replace(pair, train=pair.test, test=pair.train))
