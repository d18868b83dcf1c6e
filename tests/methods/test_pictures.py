"""What a picture may hold."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.pictures import Line, Points


def test_lines_over_runs_have_mean_and_extremes():
    line = Line.over_runs("ours", [1, 2], [[1, 4], [3, 8]])
    assert (line.y, line.low, line.high, line.role) == ([2.0, 6.0], [1.0, 4.0], [3.0, 8.0], "result")


def test_roles_are_known():
    with pytest.raises(InputError, match="role"):
        Points(name="x", at=np.zeros((1, 2)), role="secret")
    with pytest.raises(InputError, match="role"):
        Line(name="x", x=[], y=[], role="secret")
