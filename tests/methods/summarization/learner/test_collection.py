"""Points as owners send them: what is wrong is left out and noted, never shown."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import Allocation
from privada.methods.summarization.learner.collection import PointCollection


@pytest.fixture
def points(matching):
    return PointCollection(embedding=matching.embedding, embedded=False)


def to_summary(points):
    return points.to_summary(
        Allocation(rows={"a": 3}, sizes={"a": 9}, suitable={}, target=np.zeros(40), variance=0.0, releases=())
    )


def test_sound_points_and_labels_are_kept(points):
    points.add("a", {"X": np.array([[1.0, 2.0], [3.0, 4.0]]), "y": np.array([0, 1])}, most=2)
    points.add("b", {"X": np.array([[1.0, 2.0]]), "y": np.array([1])}, most=1)
    summary = to_summary(points)
    assert summary.owner.tolist() == ["a", "a", "b"], "another owner may hold an equal point"
    assert summary.y.tolist() == [0, 1, 1]
    assert summary.faults == ()


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({"X": [[7.31, np.nan], [1.0, 1.0]]}, "a: a point that is not finite (1)"),
        ({"X": [[7.31, 2.0], [7.31, 2.0], [1.0, 1.0]]}, "a: a point twice (1)"),
        ({"X": [[0.0, 1.0], [-0.0, 1.0], [2.0, 2.0]]}, "a: a point twice (1)"),
        ({"X": [[1.0, 1.0], [2.0, 2.0], [7.31, 3.0], [4.0, 4.0]]}, "a: more points than asked for"),
        ({"X": [[1.0, 1.0, 7.31]]}, "a: what it sent is no matrix of the right width"),
        ({"H": [[1.0, 1.0]]}, "a: what it sent is no matrix of the right width"),
        ({"X": [["7.31", "x"]]}, "a: what it sent is no matrix of the right width"),
        ({"X": [[1.0, 1.0]], "y": [0, 1]}, "a: what it sent is no matrix of the right width"),
    ],
)
def test_what_is_wrong_is_noted_without_a_row(points, rows, fault):
    points.add("a", {name: np.array(value) for name, value in rows.items()}, most=3)
    points.add("b", {"X": np.array([[5.0, 5.0]])}, most=1)
    summary = to_summary(points)
    assert summary.faults == (fault,)
    assert "7.31" not in str(summary.faults)
    assert np.isfinite(summary.X).all()


def test_nothing_that_can_be_used_is_an_error(points):
    points.note("a", "late")
    with pytest.raises(InputError, match="No owner sent a point"):
        to_summary(points)
