"""Questions for raw rows: a policy must allow them, and what was sent before is not sent again."""

import numpy as np
import pytest

from privada.exceptions import InputError, PolicyError
from privada.methods.summarization import EmbeddedRows, SummaryRows


def question(matching, kind=SummaryRows, **more):
    settings = {"target": np.zeros(40), "size": 3} | more
    return kind(embedding=matching.embedding, guarantee=matching.owners, **settings)


def test_rows_go_to_a_named_curator_only(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    with pytest.raises(PolicyError, match="mallory"):
        owner.disclose(question(matching), to="mallory")
    assert owner.disclose(question(matching), to="curator").rows["X"].shape == (3, 2)
    embedded = owner.disclose(question(matching, EmbeddedRows), to="curator").rows
    assert set(embedded) == {"H"}
    assert embedded["H"].shape == (3, 40)


def test_skipped_rows_are_those_that_came_first(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    whole = owner.disclose(question(matching, size=5), to="curator").rows["X"]
    rest = owner.disclose(question(matching, size=3, skip=2), to="curator").rows["X"]
    assert np.array_equal(whole[2:], rest)
    assert len(owner.disclose(question(matching, size=99), to="curator").rows["X"]) == 30


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"size": 0}, "size"),
        ({"skip": -1}, "skip"),
        ({"size": 10**7, "skip": 1}, "size and skip"),
        ({"variance": -1.0}, "variance"),
        ({"target": np.zeros(3)}, "target"),
        ({"target": np.full(40, np.inf)}, "target"),
    ],
)
def test_bad_parameters_are_named(matching, bad, named):
    with pytest.raises(InputError, match=named):
        question(matching, **bad)
