"""Accuracy for each class."""

import numpy as np
import pytest

from privada_lab.experiments.transport.case import cases
from privada_lab.experiments.transport.classwise import by_class, classwise


def test_a_class_without_points_has_no_accuracy():
    found = by_class(np.array([0, 0, 2]), np.array([0, 2, 2]), 3)
    assert found[0] == 100
    assert np.isnan(found[1])
    assert found[2] == 50
    assert found[3] == pytest.approx(200 / 3)


def test_the_table_has_a_row_for_each_class_and_one_for_all(domains):
    table = classwise("SURF", next(cases("surf", domains("surf", n=60))), 1)
    assert table.columns == (
        "class",
        "ours",
        "PATE",
        "DPDA made sound, minibatches",
        "DPDA as printed, minibatches (attribute level)",
        "source only (not private)",
        "OTDA 0.2 (not private)",
    )
    assert [row[0] for row in table.rows] == [*(f"class {code}" for code in range(10)), "all"]
