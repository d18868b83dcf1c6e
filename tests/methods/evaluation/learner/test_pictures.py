"""Evaluations as pictures."""

import numpy as np
import pytest

from privada import evaluate
from privada.methods.hypotheses import linear

pytest.importorskip("matplotlib")
X = np.random.default_rng(31).uniform(size=(500, 1))
THREE = linear([[-6.0, 0.0, 6.0]], [2.0, 1.5, -4.0])


def test_two_classes_have_three_panels(tmp_path):
    y = np.where(X[:, 0] > 0.5, "$yes", "no_")
    found = evaluate(linear([[8.0]], [-4.0]), X, y, classes=("no_", "$yes"), bounds=(0, 1), epsilon=1.0)
    figure = found.plot()
    assert len(figure.axes) == 3
    assert str(found.guarantee) in figure.get_suptitle()
    figure.savefig(tmp_path / "evaluation.png")


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(("settings", "panels"), [({"bins": 1}, 1), ({}, 2), ({"positive": 2}, 3)])
def test_panels_are_what_was_asked_for(settings, panels):
    y = np.minimum(2, (3 * X[:, 0]).astype(int))
    found = evaluate(THREE, X, y, classes=(0, 1, 2), bounds=(0, 1), epsilon=2.0, **settings)
    assert len(found.plot().axes) == panels
