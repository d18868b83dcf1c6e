"""Labels of chosen points."""

import numpy as np

from privada_lab.datasets.source_target import Pair
from privada_lab.experiments.clustering.labelled import _accuracy, _private_weights, _ways


def test_chosen_labels_improve_the_private_model():
    """Two classes that lie elsewhere in the target: a few labels there are worth a lot."""
    from privada_lab.datasets.source_target import LabelledPair

    rng = np.random.default_rng(0)
    y, yt = rng.integers(2, size=600), rng.integers(2, size=200)
    X = rng.normal(0, 0.05, size=(600, 2)) + 0.2 * np.column_stack([2 * y - 1, 0 * y])
    Xt = rng.normal(0, 0.05, size=(200, 2)) + 0.2 * np.column_stack([0 * yt, 2 * yt - 1])
    pair = LabelledPair(Pair("p", X, Xt), X, y, Xt, yt, (0, 1))
    start = _private_weights(pair)
    before = np.mean(start.predict(Xt) == yt)
    for name, choose in _ways(0).items():
        assert _accuracy(pair, choose(pair, 10), start) > before + 0.2, name
