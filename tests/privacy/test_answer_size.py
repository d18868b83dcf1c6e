"""Answers that nobody could load are refused before anything is charged."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.cells import CellStatistics
from privada.methods.cells.questions.partition import Bins, GridCells
from privada.methods.reweighting import Descent
from privada.methods.transport import FeatureMap, RowRelease
from privada.privacy import ApproxDP, PureDP, wire

PURE = PureDP(epsilon=1, relation="add/remove")
CLAIM = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")


def rows(size, components):
    return RowRelease(features=FeatureMap.random(4, components, seed=0), size=size, guarantee=CLAIM)


def test_an_answer_of_more_bytes_than_are_read_is_refused():
    """50 million numbers, 400 MB, were written, charged, and read by nobody."""
    large = rows(500_000, 100)
    assert large.answer_bytes > 400_000_000 > wire.LARGEST_FILE
    with pytest.raises(InputError, match="at most 268,435,456 bytes"):
        large.check_answer_size()
    rows(300_000, 100).check_answer_size()


def test_the_last_answer_that_is_admitted_can_be_read():
    """At the limit: bytes that `wire.unpack` still takes."""
    fits = (wire.LARGEST_FILE - rows(1, 1).answer_bytes) // 8 - 1
    question = rows(fits, 1)
    question.check_answer_size()
    header = {"guarantee": question.guarantee.to_dict(), "price": question.price.to_dict()}
    blob = wire.pack("release", header, {"rows": np.zeros((fits, 1))})
    assert len(blob) <= question.answer_bytes <= wire.LARGEST_FILE
    assert wire.unpack(blob, kind="release")[1]["rows"].shape == (fits, 1)
    with pytest.raises(InputError, match="bytes"):
        rows(fits + 100, 1).check_answer_size()


def test_an_answer_of_so_many_arrays_that_its_header_is_not_read_is_refused():
    question = Descent(
        size=10,
        weights=np.zeros((1, 1)),
        intercepts=np.zeros(1),
        transform=np.eye(1),
        shift=np.zeros(1),
        curvature=np.eye(1),
        radius=1.0,
        threshold=0.5,
        alpha=0.5,
        steps=60_000,
        guarantee=CLAIM,
    )
    assert question.answer_bytes < wire.LARGEST_FILE
    with pytest.raises(InputError, match="fewer arrays, got 60,000"):
        question.check_answer_size()


def test_counts_of_many_cells_are_counted():
    table = GridCells(factors=tuple(Bins(feature=j, edges=np.arange(99.0)) for j in range(3)))
    question = CellStatistics(tables=(table,), n_classes=5, guarantee=PURE)
    assert question.answer_shapes() == {"counts": (1_000_000, 5)}
    assert 40_000_000 < question.answer_bytes < 40_200_000
