import numpy as np
import pytest

from privada.parties import Category, Number, Schema

COLUMNS = (Number(name="age", low=0, high=120), Category(name="ward", values=("a", "b", "c")))


@pytest.fixture
def schema():
    return Schema(columns=COLUMNS, label=Category(name="ill", values=("no", "yes")), size=6)


@pytest.fixture
def table():
    return {
        "age": np.array([10.0, 50.0, 70.0, 130.0, -4.0, 33.0]),
        "ward": np.array(["a", "b", "c", "a", "b", "c"], dtype=object),
        "ill": np.array(["no", "yes", "no", "yes", "no", "yes"], dtype=object),
    }
