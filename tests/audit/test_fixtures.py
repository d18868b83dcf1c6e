"""The auditors as fixtures: they return results and fail tests."""

import numpy as np
import pytest

from privada.audit import Sample
from privada.methods.method import find_method
from privada.privacy import PureDP

pytest_plugins = ["privada.audit.fixtures"]

CLAIMED = PureDP(epsilon=1.0, relation="add/remove")


def noisy(rng, scale):
    return lambda rows: len(rows) + np.rint(rng.laplace(scale=scale))


def test_a_sound_question_passes_both(audit, replay, rehearsal):
    example = find_method("cells").example()
    sample = Sample.of(schema=example.schema, **example.data)
    rows, neighbour = sample.rows(), sample.without([0]).rows()
    assert replay(example.questions[0], rows, neighbour).passed
    assert audit(example.questions[0], rows, neighbour, trials=2000, noise=rehearsal).passed


def test_a_broken_function_fails_the_test(audit):
    rng = np.random.default_rng(3)
    with pytest.raises(pytest.fail.Exception, match="FAILED: ε >= "):
        audit(noisy(rng, 0.2), [1], [1, 2], claimed=CLAIMED, trials=2000)


def test_a_violation_fails_the_test(replay):
    example = find_method("cells").example()
    sample = Sample.of(schema=example.schema, **example.data)
    with pytest.raises(pytest.fail.Exception, match="counts: 2 of 1 allowed"):
        replay(example.questions[0], sample.rows(), sample.without([0, 1]).rows())
