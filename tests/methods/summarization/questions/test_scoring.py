"""Scores, their order, and ranks."""

import numpy as np
import pytest

from privada.methods.summarization.questions.scoring import order_points, ranks, score_points


def test_a_score_is_the_same_in_any_company():
    rng = np.random.default_rng(1)
    features, slope = rng.normal(size=(101, 23)), rng.normal(size=23)
    together = score_points(features, slope)
    alone = [score_points(row[None], slope)[0] for row in features]
    assert together.tolist() == alone
    assert score_points(features[::-1], slope).tolist() == alone[::-1]
    assert together == pytest.approx(features @ slope)


def test_equal_scores_are_ordered_by_the_rows_values():
    scores = np.array([1.0, 3.0, 3.0, 2.0])
    X = np.array([[0.0, 0.0], [1.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    assert order_points(scores, X, most=3).tolist() == [2, 1, 3]
    assert order_points(scores, X, most=9).tolist() == [2, 1, 3, 0]
    turned = order_points(scores[::-1], X[::-1], most=3)
    assert [3 - i for i in turned] == [2, 1, 3], "whatever the order of the file"


def test_ranks_count_better_points_of_others_that_are_left():
    bids = {"a": np.array([5.0, 1.0]), "b": np.array([4.0]), "c": np.zeros(0)}
    assert ranks(bids, {}) == {"a": 1, "b": 2}
    assert ranks(bids, {"c": np.array([9.0, 8.0])}) == {"a": 2, "b": 3}, "one of each owner at batch 1"
    assert ranks(bids, {"c": np.array([9.0, 8.0])}, batch=2) == {"a": 2, "b": 3}
    assert ranks(bids, {"c": np.array([9.0, 8.0])}, batch=3) == {"a": 1, "b": 2}
