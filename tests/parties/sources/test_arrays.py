import numpy as np
import pytest

from privada.exceptions import SchemaError
from privada.parties import Number, Schema
from privada.parties.sources.arrays import ArraySource

SCHEMA = Schema(
    columns=[Number(name="a", low=0, high=1), Number(name="b", low=0, high=1)], person_id="who", max_rows=1
)


def test_columns_have_names_by_their_place():
    source = ArraySource(np.arange(6.0).reshape(3, 2), SCHEMA, None, ["p", "q", "p"])
    (table,) = source.tables(10)
    assert {name: values.tolist() for name, values in table.items()} == {
        "a": [0, 2, 4],
        "b": [1, 3, 5],
        "who": ["p", "q", "p"],
    }
    assert source.column("who").tolist() == ["p", "q", "p"]


def test_persons_of_a_list_keep_their_types():
    """As strings, 1 and "1" would be one person."""
    source = ArraySource(np.zeros((2, 2)), SCHEMA, None, [1, "1"])
    assert source.column("who").tolist() == [1, "1"]


@pytest.mark.parametrize(("person", "message"), [(None, "has a person"), (["p"], "lengths differ")])
def test_persons_that_do_not_fit_are_named(person, message):
    with pytest.raises(SchemaError, match=message):
        ArraySource(np.zeros((2, 2)), SCHEMA, None, person)
