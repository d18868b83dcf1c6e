"""Audits of private importance weighting (the baseline of Ji and Elkan), under replace-one.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds; of a replay: none.
"""

from dataclasses import replace

import numpy as np
import pytest

from privada.audit import Sample, across_batches, audit_question, landmarks, neighbours, replay
from privada.audit.transcript import coupled
from privada.parties import Rows, Schema
from privada.privacy import ZCDP, ApproxDP, PureDP, Relation
from privada_lab.baselines import WeightingCoefficients

N = 10
RNG = np.random.default_rng(0)
PUBLIC, PRIVATE = RNG.uniform(-0.7, 0.7, size=(30, 2)), RNG.uniform(-0.7, 0.7, size=(N, 2))
SCHEMA = Schema.of_numbers(bounds=(-1.0, 1.0), width=2, size=N)
GUARANTEES = {
    "pure": PureDP(epsilon=2.0, relation="replace-one"),
    "zcdp": ZCDP(rho=0.5, relation="replace-one"),
    "approximate": ApproxDP(epsilon=2.0, delta=1e-5, relation="replace-one"),
}


def asked(guarantee, **more):
    settings = {"public": PUBLIC, "size": N, "norm_bound": 1.0, "regularisation": 0.05}
    return WeightingCoefficients(**(settings | more), guarantee=guarantee)


def replays(question):
    sample, rng = Sample.of(PRIVATE, schema=SCHEMA), np.random.default_rng(0)
    marks = landmarks(question, SCHEMA)
    for pair in neighbours(sample, relation=Relation.REPLACE_ONE, rng=rng, landmarks=marks):
        rows, neighbour = pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(1))
        yield replay(question, rows, neighbour, pair=pair.name), rows, neighbour
    pair = across_batches(sample, relation=Relation.REPLACE_ONE)
    yield replay(question, pair.sample.rows(), pair.neighbour.rows(), pair=pair.name), None, None


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=GUARANTEES)
def test_every_replay_passes(guarantee):
    shares = []
    for result, _, _ in replays(asked(guarantee)):
        assert result.passed, str(result)
        shares.append(result.share)
    assert max(shares) > 0.02


@pytest.mark.statistical
@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=GUARANTEES)
def test_every_black_box_bound_stays_within_the_claim(guarantee, rehearsal):
    question = asked(guarantee)
    found = [each for each in replays(question) if each[1] is not None]
    _, rows, neighbour = max(found, key=lambda each: each[0].share)
    result = audit_question(question, rows, neighbour, trials=2000, noise=rehearsal)
    assert result.passed, str(result)


@pytest.mark.statistical
def test_part_of_the_claim_is_seen(rehearsal):
    """One row alone on the rim turns round and λ is large: the minimiser moves nearly as far as it may."""
    question = asked(PureDP(epsilon=6.0, relation="replace-one"), public=PUBLIC[:, :1] * 0, size=1)
    question = replace(question, regularisation=50.0)
    schema = Schema.of_numbers(bounds=(-1.0, 1.0), width=1, size=1)
    sides = [Rows(np.array([[x]]), schema=schema) for x in (-1.0, 1.0)]
    result = audit_question(question, *sides, trials=4000, noise=rehearsal)
    assert result.passed, str(result)
    assert result.epsilon_lower > 1


@pytest.mark.statistical
def test_a_tenth_of_the_noise_is_caught(rehearsal):
    """The same coefficients with the noise of a reach ten times too small."""

    class Loud(WeightingCoefficients):
        def planned(self):
            return asked(PureDP(epsilon=60.0, relation="replace-one"), public=self.public, size=1).plan

    question = Loud(
        public=PUBLIC[:, :1] * 0,
        size=1,
        norm_bound=1.0,
        regularisation=0.05,
        guarantee=PureDP(epsilon=2.0, relation="replace-one"),
    )
    schema = Schema.of_numbers(bounds=(-1.0, 1.0), width=1, size=1)
    sides = [Rows(np.array([[x]]), schema=schema) for x in (-1.0, 1.0)]
    assert not audit_question(question, *sides, trials=4000, noise=rehearsal).passed
