"""Settings of one kind of question decide for it, and are refused beside another."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.marginals import Public, askings, default_regression
from privada.methods.marginals.learner.forecast import Forecast, explained
from privada.privacy import Pure

PURE = Pure(epsilon=1, relation="add/remove")
PUBLIC = Public(source=np.random.default_rng(0).uniform(size=(90, 3)), classes=(0, 1))


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("cells", {"bins": 5}, 'Expected bins only for error tables, got 5 for question="cells"'),
        ("embedding", {"vary": True}, "Expected vary only for error tables"),
        ("embedding", {"cells": 9}, 'Expected cells only for question="cells", got 9'),
        ("marginals", {"cells": 9}, 'got 9 for question="marginals"'),
        ("auto", {"cells": 9, "bins": 4}, "Expected bins only for error tables"),
        ("marginals", {"stop": 0.1}, "Expected stop=0 for one round"),
        ("marginals", {"stop": -0.1, "rounds": 2}, "Expected stop between 0 and 1"),
        ("auto", {"reweight": "no"}, "Expected reweight to be true or false"),
        ("auto", {"size": 0}, "Expected size"),
        ("auto", {"size": 10**12}, "Expected size to be at most 1000000000 rows, got 1000000000000"),
    ],
    ids=str,
)
def test_settings_of_another_kind_are_refused_by_name(kind, given, message):
    with pytest.raises(InputError, match=message):
        askings(kind, PUBLIC, **({"guarantee": PURE, "size": 300} | given))


def test_numbers_are_planned_for_a_size_that_can_be():
    with pytest.raises(InputError, match="Expected size to be at most"):
        default_regression(PUBLIC.source, guarantee=PURE, size=10**12)


@pytest.mark.parametrize("size", [1, 100, 10**9])
def test_no_noise_tells_as_much_as_next_to_none(size):
    points = PUBLIC.source
    halves = np.stack([points[:, 0] < 0.5, points[:, 0] >= 0.5]).astype(float)
    told = [explained(points, [halves, halves], variance=v, size=size) for v in (0.0, 1e-10, 1.0)]
    assert told[0] == pytest.approx(told[1], rel=1e-4)
    assert 0 < told[2] <= told[0] + 1e-9
    assert told[0] < 1
    assert explained(points, [np.zeros((2, len(points)))], variance=0.0, size=size) == 0


@pytest.mark.parametrize(("noise", "told"), [(2.0, "6.2"), (1e-9, "1e+10"), (0.0, "inf")])
def test_a_forecast_says_how_little_noise_there_is(noise, told):
    forecast = Forecast(tables=1, entries=40, rounds=1, noise=noise, rows=12.5, explained=0.5)
    assert f"(signal to noise {told})" in str(forecast)


def test_early_stopping_reaches_the_plan():
    (asking,) = askings("auto", PUBLIC, guarantee=PURE, size=300, rounds=2, stop=0.25).values()
    assert asking.asked.stop == 0.25
