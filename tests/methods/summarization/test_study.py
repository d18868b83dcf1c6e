"""The ``[method]`` table of a study becomes a learner, or the key that is wrong is named."""

import pytest

from privada._toml import Section
from privada.exceptions import PrivadaError
from privada.methods.summarization.study import learner
from privada.parties.schema import Schema
from privada.privacy import Approximate

BUDGET = Approximate(epsilon=1, delta=1e-5, relation="replace-one")
GOOD = {"consumer": "v", "size": 5, "gamma": 0.5, "n_features": 8}


def make(tmp_path, sizes=(20, 30, 40), **more):
    schemas = {
        name: Schema.of_numbers(bounds=(-1, 1), width=2, size=size)
        for name, size in zip("vab", sizes, strict=True)
    }
    section = Section(GOOD | more, name="study.toml", text="")
    return learner(section, schemas=schemas, guarantee=BUDGET, home=tmp_path)


def test_it_plans_all_that_it_asks_for(tmp_path):
    asks = make(tmp_path).asks
    assert [ask.owner for ask in asks] == ["v", "a", "a", "b", "b", "a", "b"]
    assert [ask.to for ask in asks[-2:]] == ["curator", "curator"]


def test_the_validation_set_may_have_a_budget_of_its_own(tmp_path):
    first = make(tmp_path, validation_epsilon=3.0, validation_delta=1e-4).asks[0]
    assert first.question.guarantee.epsilon == 3.0


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"consumer": "x"}, "consumer"),
        ({"size": 100}, "70 rows"),
        ({"gamma": -1.0}, "gamma"),
        ({"sizes": (None, 30, 40)}, "public sizes"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_the_wrong_key_is_named(tmp_path, more, named):
    with pytest.raises(PrivadaError, match=named):
        make(tmp_path, **more)
