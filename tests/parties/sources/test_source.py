import time

import numpy as np
import pytest

from privada.exceptions import SourceError
from privada.parties import Schema
from privada.parties.sources.arrays import ArraySource
from privada.parties.sources.source import WatchedSource

SCHEMA = Schema.of_numbers(bounds=(0, 1), width=1)


class Clock:
    """What tells files apart, as the test says."""

    now = "first"
    settled = True


@pytest.fixture
def watched():
    clock = Clock()
    inner = ArraySource(np.zeros((4, 1)), SCHEMA, None, None)
    return WatchedSource(inner, lambda: clock.now, lambda: clock.settled), clock


def test_what_stays_the_same_is_read_through(watched):
    source, _ = watched
    with source.pinned() as now:
        assert [len(table["x0"]) for table in now.tables(3)] == [3, 1]
        assert len(now.column("x0")) == 4
        assert len(now.parts()) == 1


def test_a_change_before_or_during_a_reading_is_an_error(watched):
    source, clock = watched
    with pytest.raises(SourceError, match="load the owner again"), source.pinned():
        clock.now = "second"
    with pytest.raises(SourceError, match="load the owner again"), source.pinned():
        time.sleep(0)
    with pytest.raises(SourceError, match="load the owner again"):
        source.check_unchanged()
    assert source.identity() is None


def test_what_may_change_unseen_has_no_identity(watched):
    source, clock = watched
    assert source.identity() == "first"
    clock.settled = False
    assert source.identity() is None


def test_rows_in_memory_are_always_of_one_moment():
    source = ArraySource(np.zeros((4, 1)), SCHEMA, None, None)
    with source.pinned() as now:
        assert now is source
    assert source.identity() is None
    source.check_unchanged()
