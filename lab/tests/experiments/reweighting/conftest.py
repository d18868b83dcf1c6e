"""Generated domains."""

from dataclasses import replace

import numpy as np
import pytest

from privada_lab.datasets.domain_pairs import drifting


@pytest.fixture(scope="session")
def pair():
    return drifting(3, domains=4, rows=450, n=300, d=5)


@pytest.fixture(scope="session")
def two_classes(pair):
    parts = {
        name: replace(getattr(pair, name), y=(getattr(pair, name).y > 0).astype(np.int64))
        for name in ("source", "train", "validation", "test")
    }
    return replace(pair, **parts, classes=2)
