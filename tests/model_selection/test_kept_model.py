"""Models of this process as candidates: chosen within ε, and unknown elsewhere."""

import numpy as np
import pytest

from privada import PureDP
from privada.exceptions import InputError, PrivadaError
from privada.methods.marginals.questions import HypothesisChoice
from privada.model_selection.kept_model import KeptModel, keeping
from privada.privacy.noise import SecureNoise


def test_the_choice_keeps_its_epsilon():
    """At most e^ε between neighbours, by the frequencies of many choices; false alarms: below 1e-6."""
    X = np.array([[0.1]] * 6 + [[0.9]])
    y = np.array([0] * 6 + [1])
    epsilon, counts = 1.0, []
    for count in (6, 7):
        with keeping([Always(0), Always(1)], (0, 1)) as candidates:
            counts.append(choose_often(candidates, X[-count:], y[-count:], epsilon, times=4000))
    assert abs(np.log(counts[0] / counts[1])) < epsilon + 0.35
    assert counts[0] > 0


class Always:
    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.full(len(X), self.label)


def choose_often(candidates, X, y, epsilon, *, times):
    """How often the second candidate is chosen, by exact draws of the mechanism."""
    guarantee = PureDP(epsilon=epsilon, relation="add/remove")
    draw = HypothesisChoice(candidates=candidates, n_classes=2, guarantee=guarantee).plan.draws["choice"]
    scores = np.array([int((each.codes(X) == y).sum()) for each in candidates])
    noise = SecureNoise()
    return sum(int(draw.draw(scores, noise)[0]) for _ in range(times))


def test_a_kept_model_is_known_in_its_block_only():
    with keeping([Always(1)], (0, 1)) as (model,):
        model.fits(3, 2)
        with pytest.raises(InputError, match="Expected a model of 3 classes"):
            model.fits(3, 3)
    with pytest.raises(PrivadaError, match="another process"):
        model.fits(3, 2)
    assert isinstance(model, KeptModel)
