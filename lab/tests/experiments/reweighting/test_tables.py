"""The tables on generated domains."""

import numpy as np

from privada_lab.experiments import reweighting
from privada_lab.experiments.reweighting import tables


def test_table_one_has_every_method(pair):
    errors = dict(reweighting.table_errors(pair))
    assert set(errors) == {"target", "KMM", "DM", "CnvxAdap", "CnvxAdap, u optimised"}
    assert errors["CnvxAdap"] < 1.1 * errors["target"]


def test_the_gradient_mapping_falls_with_the_number_of_steps(two_classes):
    coef, norms = tables.nonconvex(two_classes, alpha=0.05, steps=300)
    assert len(norms) == 300
    assert min(norms) < 0.05 * norms[0]
    assert np.isfinite(coef).all()


def test_table_four_has_every_method_and_adaptation_helps(two_classes):
    wrong = dict(tables._classified(two_classes))
    assert list(wrong) == ["source", "target", "KMM", "NCnvxAdap"]
    assert wrong["NCnvxAdap"] <= wrong["source"]
