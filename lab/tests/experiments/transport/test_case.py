"""Cases on generated domains: what is shared between contenders changes nothing."""

import warnings

import numpy as np
import pytest

from privada.methods.transport.estimator import TransportClassifier
from privada_lab.experiments import transport


def test_scores_are_means_over_pairs_of_means_over_runs():
    scores = transport.Scores()
    for pair, values in ((("a", "b"), [1.0, 3.0]), (("b", "a"), [4.0])):
        scores.add("ours", pair, *values)
    assert scores.mean("ours") == 3.0
    assert scores.error("ours") == pytest.approx(0.5)


def test_mapping_rows_once_is_asking_about_the_rows(domains):
    case = next(transport.cases("googlenet", domains("googlenet")))
    (X, _), (y, _) = (case.source.domain.X, case.target.domain.X), case.labels
    settings = {"epsilon": 4.0, "delta": case.delta, "classes": tuple(range(10)), "insecure_seed": 3}
    settings["release"] = "statistics"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = TransportClassifier(**settings, rescale="root", bounds=(0, 50)).fit(
            X, y, case.target.domain.X
        )
        once = TransportClassifier(**settings, bounds=(-2, 2), features=case.inside)
        once.fit(case.mapped, y, case.target.points)
    assert np.allclose(whole.release_["sums"], once.release_["sums"])
    assert np.array_equal(whole.transduction_, once.transduction_)
