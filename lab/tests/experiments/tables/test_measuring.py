"""One fit is measured, or given up."""

import time

from privada_lab.experiments.tables.measuring import Unit, measure, time_limit

CANCER = "cancer: smooth to rough"


def test_a_fit_that_takes_too_long_is_recorded_as_such():
    unit = Unit(pair=CANCER, split=0, todo=(("ReweightedClassifier", 1.0),), data=None, limit=1e-4)
    (found,) = measure(unit)
    assert (found.failed, found.error) == ("time limit", None)
    start = time.perf_counter()
    with time_limit(None):
        pass
    with time_limit(5.0):
        pass
    assert time.perf_counter() - start < 1
