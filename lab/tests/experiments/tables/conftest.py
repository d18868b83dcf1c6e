"""Records of fits that were never made."""

import pytest

from privada_lab.experiments.tables import CONTENDERS, Record

NAMES = {each.name: each for each in CONTENDERS}


@pytest.fixture
def record():
    """Make the record of a contender with an error."""

    def make(contender, error, *, pair="cancer: smooth to rough", epsilon=1.0, split=0, **more):
        spends = NAMES[contender].spends
        about = {"rows": 150, "features": 29, "tests": 134, "split": split, "pair": pair}
        return Record(contender=contender, epsilon=epsilon if spends else None, error=error, **about, **more)

    return make
