"""Contenders on generated domains."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from privada_lab.experiments import reweighting
from privada_lab.experiments.reweighting import contenders


def test_ours_is_ahead_of_every_private_baseline_on_drifting_domains(pair):
    ours = reweighting.ours(pair, 4.0)
    errors = {
        name: contenders.error(pair, predicted)
        for name, predicted in reweighting.private_baselines(pair, 4.0)
    }
    assert len(errors) == 5 + 2 * (find_spec("opacus") is not None)
    assert ours < min(errors.values())


def test_every_private_method_is_held_to_the_range_of_the_public_labels(pair):
    low, high = contenders.label_range(pair)
    assert (low, high) == (pair.source.y.min(), pair.source.y.max())
    wild = np.where(pair.test.y > 0, 1e6, -1e6)
    held = np.where(pair.test.y > 0, high, low)
    assert contenders.error(pair, wild) == pytest.approx(np.mean((held - pair.test.y) ** 2))


def test_settings_come_from_public_rows_alone(pair):
    settings = reweighting.public_settings(pair)
    assert settings == reweighting.public_settings(replace(pair, train=pair.test, test=pair.train))


def test_ours_is_ahead_of_every_trivial_rival_on_drifting_domains(pair):
    rivals = {name: contenders.error(pair, found) for name, found in contenders.trivial_rivals(pair, 4.0)}
    assert {name.removeprefix("trivial: ") for name in rivals} == {
        "public ridge",
        "shift",
        "one sum",
        "noisy mean",
        "DP ridge",
    }
    assert reweighting.ours(pair, 4.0) < min(rivals.values())


def test_trivial_rivals_of_two_classes_see_the_public_labels(two_classes):
    names = {name for name, _ in contenders.trivial_rivals(two_classes, 4.0)}
    assert {"trivial: public logistic", "trivial: class shares", "trivial: noisy majority"} < names


def test_private_baselines_of_two_classes(two_classes):
    names = [name for name, _ in contenders.private_baselines(two_classes, 4.0)]
    deep = ["DP-SGD (Opacus)", "DP-SGD (Opacus), public start"] if find_spec("opacus") else []
    assert names == [*deep, "noisy gradients", "objective perturbation"]
