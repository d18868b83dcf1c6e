"""A method audited by all auditors: replays, noise, and the black box over many pairs."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent

from privada.audit import Sample, audit_example, audit_method
from privada.audit.method import audit_pairs
from privada.audit.pairs import Pair
from privada.methods.cells.questions.partition import Bins
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.example import Example
from privada.methods.method import Method, find_method
from privada.parties.schema import Number, Schema
from privada.privacy import ApproxDP, Gaussian, Grid, Laplace, PureDP, Question, Unit
from privada.privacy.accounting import accountant, curves
from privada.privacy.mechanism import Plan

PERSON = Unit(name="person", max_rows=2)
FINE = Grid(-10)
SAMPLED = SampledWithoutReplacementDpEvent(8, 1, GaussianDpEvent(0.5))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OneSecretRow(Question):
    """One of eight rows, sampled in secret: under replace-one sampling amplifies."""

    kind = "toy.sampled"
    answered_by = f"{__name__}:answer_sampled"

    def planned(self):
        noise = Gaussian.calibrated(sensitivity=1.01, mu=2.0, grid=FINE)
        return Plan(draws={"rows": noise}, event=SAMPLED)


class RowsOnly(OneSecretRow):
    """A count that ignores the unit it is asked for."""

    answered_by = f"{__name__}:answer_count"

    def planned(self):
        return Plan(draws={"count": Laplace(sensitivity=1, scale=1.0)})


def answer_sampled(question, rows, draw):
    X = np.concatenate([batch.X for batch in rows.batches()])
    X = np.vstack([X, np.zeros((8, 1))])[:8]
    return {"rows": draw("rows", FINE.truncate(X[draw.noise.permutation(8)[:1]]))}


def answer_count(question, rows, draw):
    return {"count": draw("count", np.array([sum(len(batch) for batch in rows.batches())]))}


def eight(question):
    schema = Schema.of_numbers(bounds=(0, 1), width=1, size=8)
    data = {"data": np.linspace(0, 1, 8)[:, None]}
    return Example(schema=schema, data=data, questions=(question,), inquiry=None)


def persons(unit=PERSON):
    """A case of persons with several rows; the question may be priced for another unit than theirs."""
    schema = Schema(columns=[Number(name="x", low=0, high=1)], person_id="who", max_rows=2)
    question = CellStatistics(
        tables=(Bins(feature=0, edges=np.array([0.5])),),
        guarantee=PureDP(epsilon=1.0, relation="add/remove", unit=unit),
    )
    data = {"data": np.linspace(0, 1, 12)[:, None], "person": np.arange(12) // 4}
    return Example(schema=schema, data=data, questions=(question,), inquiry=None)


def persons_by_row():
    return persons(unit=replace(PERSON, max_rows=1))


def method_of(make_example):
    return type("Toy", (Method,), {"name": "toy", "example": staticmethod(make_example)})


@pytest.mark.statistical
def test_every_question_is_audited_and_said(rehearsal):
    """False alarm: 1e-2 for each of the questions."""
    found = audit_method(find_method("cells"), trials=2000, noise=rehearsal)
    assert len(found) == len(find_method("cells").example().questions)
    for audit in found:
        assert audit.passed, str(audit)
        plain = json.loads(json.dumps(audit.to_dict()))
        assert plain["replay"]["passed"]
        assert plain["blackbox"]["trials"] == 2000
        assert "black box passed" in str(audit)


@pytest.mark.statistical
def test_persons_are_audited_as_persons(rehearsal):
    """False alarm: 1e-2."""
    (sound,) = audit_method(method_of(persons), trials=2000, noise=rehearsal)
    assert sound.passed, str(sound)
    assert sound.worst.share == pytest.approx(1.0, abs=0.2)


@pytest.mark.statistical
def test_a_price_for_one_row_is_caught_where_persons_have_two(rehearsal):
    (broken,) = audit_method(method_of(persons_by_row), trials=4000, noise=rehearsal)
    assert not broken.passed
    assert "counts: 2 of 1 allowed" in broken.worst.violations
    assert not broken.blackbox.passed


@pytest.mark.statistical
def test_a_secret_sample_that_amplifies_passes(rehearsal):
    """Also where most rows are alike and where rows stand elsewhere; false alarm: 1e-6."""
    claimed = ApproxDP(epsilon=1.0, delta=accountant.delta(SAMPLED, 1.0), relation="replace-one")
    found = audit_example(
        eight(OneSecretRow(guarantee=claimed)), trials=4000, confidence=0.999999, noise=rehearsal
    )
    assert found[0].passed, str(found[0])


def test_a_question_of_rows_that_takes_persons_is_replayed_with_persons(rehearsal):
    """It says nothing of persons in its example, accepts them, and charges them as rows."""
    claimed = PureDP(epsilon=1.0, relation="add/remove")
    (found,) = audit_example(eight(RowsOnly(guarantee=claimed)), trials=400, noise=rehearsal)
    assert "count: 2 of 1 allowed" in found.worst.violations
    assert "persons of at most 2 rows" in found.worst.pair
    assert found.laws.passed


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
