"""Settings are measured on pairs that no figure scores."""

import warnings

import numpy as np
import pytest

from privada.methods.transport.estimator import TransportClassifier
from privada.report.exhibit import Dots, Figure
from privada.report.tables import Table
from privada_lab.datasets.unscored_pairs import unscored_pairs
from privada_lab.experiments.transport import settings


def test_settings_are_measured_on_pairs_that_no_figure_scores(monkeypatch):
    few = [pair for pair in unscored_pairs() if pair.kind in ("mixtures", "scikit-learn")][3:6]
    monkeypatch.setattr(settings, "unscored_pairs", lambda data: iter(few))
    monkeypatch.setattr(settings, "CHOICES", {name: each[:2] for name, each in settings.CHOICES.items()})
    items = list(settings.run(runs=1, data=None))
    figures = {item.figure: item for item in items if isinstance(item, Figure)}
    assert figures.keys() == {
        f"transport_default_{name}_behind_best_eps{epsilon}"
        for name in ("components", "clipping", "refinement")
        for epsilon in (1, 4)
    }
    assert all(figure.value >= 0 for figure in figures.values())
    means, pairs = (item for item in items if isinstance(item, Table))
    names = ["10 components", "the default", "clipped at quantile 0.25", "regularisation 0.025"]
    assert [row[0] for row in means.rows] == names
    assert [row[0] for row in pairs.rows] == [pair.name for pair in few]
    (picture,) = (item for item in items if isinstance(item, Dots))
    assert picture.places == tuple(names)
    assert max(float(row[3]) for row in means.rows) > 60  # of chances of 5 to 53 %


def test_the_settings_measure_what_the_classifier_does():
    """Seeded noise, the map that is asked with, and the usual constants on the same release."""
    pair = next(pair for pair in unscored_pairs() if pair.kind == "activations")
    mapped = settings.Mapped.of(pair, settings.DEFAULT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mapped.asked(4.0, 0)
        whole = TransportClassifier(
            epsilon=4.0,
            delta=1 / 1500,
            classes=tuple(range(10)),
            bounds=(0, 50),
            algorithm="statistics",
            rescale="root",
            insecure_seed=0,
        ).fit(pair.source.X, pair.source.y, pair.target.X)
    assert np.array_equal(whole.transduction_, model.transduction_)
    right = 100 * np.mean(model.transduction_ == pair.target.y)
    assert mapped.again(model, settings.DEFAULT.refinement) == pytest.approx(right)
