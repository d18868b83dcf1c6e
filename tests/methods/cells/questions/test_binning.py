"""Counting in one pass: the bins of ``searchsorted`` for all edges and values."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.methods.cells import Bins
from privada.methods.cells.questions.binning import lay_out

FINITE = st.floats(-1.7e308, 1.7e308)
EDGES = st.lists(FINITE, min_size=1, max_size=9, unique=True).map(sorted)


@settings(max_examples=200)
@given(EDGES, EDGES, st.lists(st.tuples(FINITE, st.booleans()), max_size=40))
def test_counts_are_those_of_the_rule(first, second, values):
    values = (
        values + [(edge, False) for edge in first] + [(np.nextafter(edge, -np.inf), True) for edge in second]
    )
    X = np.array([(value, float(absent)) for value, absent in values if abs(value) < np.inf]).reshape(-1, 2)
    labels = np.arange(len(X)) % 2
    tables = (Bins(feature=0, edges=first), Bins(feature=0, edges=second, missing=1))
    for classes in (1, 2):
        found = lay_out(tables, classes).count(X, labels if classes == 2 else np.zeros(0, dtype=np.int64))
        for table, counts in zip(tables, found, strict=True):
            codes = table.assign(X) * classes + (labels if classes == 2 else 0)
            assert counts.tolist() == np.bincount(codes, minlength=table.n_cells * classes).tolist()
