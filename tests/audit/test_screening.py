"""The black box over many pairs: finds the one that matters, at its stated rate of false alarms."""

from dataclasses import dataclass

import numpy as np
import pytest

from privada.audit import Sample
from privada.audit.rows.pairs import Pair
from privada.audit.screening import audit_pairs
from privada.parties.schema import Schema
from privada.privacy import ApproxDP, Gaussian, Grid, Laplace, PureDP, Question
from privada.privacy.accounting import curves
from privada.privacy.mechanism import Plan

SCHEMA = Schema.of_numbers(bounds=(0, 1), width=1)
MU = curves.gaussian_mu(epsilon=1.0, delta=1e-5)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Asked(Question):
    mechanism: object
    kind = "toy.asked"
    answered_by = f"{__name__}:count_halves"

    def planned(self):
        return Plan(draws={"counts": self.mechanism})


class Sampled(Asked):
    answered_by = f"{__name__}:count_sampled"


def values(rows):
    return np.concatenate([batch.X[:, 0] for batch in rows.batches()])


def count_halves(question, rows, draw):
    """Two cells; a value of exactly 1/2 counts five times."""
    X = values(rows)
    left = (X <= 0.5) + 4 * (X == 0.5)
    return {"counts": draw("counts", question.mechanism.place([left.sum(), (X > 0.5).sum()]))}


def count_sampled(question, rows, draw):
    """One secret row of all: whether it is above 1/2."""
    X = values(rows)[draw.noise.permutation(8)[:1]]
    return {"counts": draw("counts", question.mechanism.place([(X > 0.5).sum()]))}


def of(*numbers):
    return Sample.of(np.array(numbers, dtype=float)[:, None], schema=SCHEMA)


def pairs(*added):
    base = of(0.1, 0.2, 0.9)
    return [Pair(f"add {value}", base, base.with_rows(of(value), at=0)) for value in added]


def laplace(scale=1.0):
    claimed = PureDP(epsilon=1.0, relation="add/remove")
    return Asked(guarantee=claimed, mechanism=Laplace(sensitivity=1, scale=scale))


@pytest.mark.statistical
def test_the_one_pair_that_breaks_the_claim_is_found_among_many(rehearsal):
    many = pairs(0.3, 0.7, 0.11, 0.12, 0.8, 0.5, 0.9)
    found = audit_pairs(laplace(), many, [1.0] * 7, trials=2000, error=1e-6, noise=rehearsal)
    (broken,) = [result for result in found if not result.passed]
    assert broken.pair == "add 0.5"


@pytest.mark.statistical
def test_sound_pairs_pass_and_the_bound_is_tight(rehearsal):
    """False alarm: 1e-6."""
    found = audit_pairs(laplace(), pairs(0.3, 0.7), [1.0, 1.0], trials=20_000, error=1e-6, noise=rehearsal)
    assert all(result.passed for result in found)
    assert max(result.tightness for result in found) > 0.85


@pytest.mark.statistical
def test_alarms_are_as_rare_as_stated(rehearsal):
    """Sound pairs at an error of 0.2: 40 audits, 20 alarms allowed; false alarm 2e-5 at exactly 0.2."""
    question, two = laplace(), pairs(0.3, 0.7)
    alarms = 0
    for _ in range(40):
        found = audit_pairs(question, two, [1.0, 1.0], trials=200, error=0.2, noise=rehearsal)
        alarms += any(not result.passed for result in found)
    assert alarms <= 20


def gaussian(scale):
    claimed = ApproxDP(epsilon=1.0, delta=1e-5, relation="add/remove")
    sound = Gaussian.calibrated(sensitivity=1, mu=MU, grid=Grid(-10))
    return Asked(
        guarantee=claimed, mechanism=type(sound)(sensitivity=1, scale=scale * sound.scale, grid=sound.grid)
    )


@pytest.mark.statistical
def test_gaussian_claims_are_tried_on_their_whole_curve(rehearsal):
    """False alarm: 1e-3. At δ = 1e-5 alone the bound would stay under a third of the claim."""
    (found, *_) = audit_pairs(gaussian(1.0), pairs(0.7), [1.0], trials=20_000, error=1e-3, noise=rehearsal)
    assert found.passed, str(found)
    assert 0.6 < found.epsilon_lower_gdp < 1.0
    assert found.epsilon_lower_gdp > found.epsilon_lower
    assert found.mu_claimed == pytest.approx(MU, rel=1e-6)
