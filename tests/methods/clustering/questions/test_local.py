"""Local means at the ends of what floats can hold."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.clustering import LocalMeans, NearestMeans, NeighbourAverages
from privada.parties import Rows, Schema
from privada.parties.answering import answerer
from privada.privacy import PureDP


@pytest.mark.parametrize("size", [1e-99, 1e-30, 1e30, 1e99])
@pytest.mark.parametrize("moments", ["none", "trace", "full", "pooled"])
def test_no_size_of_the_public_parameters_breaks_the_sensitivity(size, moments):
    """The largest and smallest units, rows on centres, on the edge, and as far as floats go."""
    schema = Schema.of_numbers(bounds=(-1.7e308, 1.7e308), width=2)
    cells = np.array([[0.0, 0.0], [3.0, 0.0]]) * size
    unit = {"guarantee": PureDP(epsilon=1, relation="add/remove")}
    for question in (
        LocalMeans(cells=cells, shells=[size, 1.5 * size], domain=size, moments=moments, **unit),
        NeighbourAverages(targets=cells, t=1, radius=size, **unit),
        NearestMeans(cells=cells, radius=size, **unit),
    ):
        if not -60 < np.log2(size) - 20 < 60 and not isinstance(question, LocalMeans):
            with pytest.raises(InputError):
                question.price
            continue
        for row in ([0, 0], [size, 0], [0.99 * size, 0.1 * size], [1.7e308, -1.7e308], [-1.7e308, 1e-300]):
            seen = {}
            rows = Rows(np.array([row], dtype=float), schema=schema)
            answerer(question)(question, rows, lambda n, v, seen=seen: seen.setdefault(n, v.copy()))
            for name, draw in question.plan.draws.items():
                assert np.abs(draw.grid.values(seen[name])).sum() <= draw.sensitivity * (1 + 1e-12)
