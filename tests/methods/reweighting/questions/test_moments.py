"""Moments of residuals: exact sums, stated sensitivities, and a plan that uses up the guarantee."""

from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.reweighting.example import example
from privada.methods.reweighting.learner.evidence import symmetric
from privada.methods.reweighting.owner.answer import answer_moments
from privada.parties import Rows
from privada.privacy.relation import Unit

CASE = example()
MIXTURE, CORRECTION = (
    next(each for each in CASE.questions if each.kind == f"reweighting.{name}")
    for name in ("mixture", "correction")
)


def exact(question, X, y):
    """Payload without noise, in the label's units."""

    def draw(name, total):
        return total * question.plan.draws[name].grid.step

    schema = replace(CASE.schema, size=len(X))
    return answer_moments(question, Rows(X, schema=schema, y=y), draw)


def directions(question, X):
    seen = question.features.extend(X)[:, question.features.columns :]
    Phi = np.einsum("nj,kjo->nko", np.column_stack([seen, np.ones(len(X))]), question.directions)
    length = np.sqrt((Phi**2).sum(axis=(1, 2), keepdims=True))
    return Phi * np.minimum(1, question.radius / length)


def test_sums_are_those_of_clipped_records():
    X, y = CASE.data["data"], CASE.data["y"]
    found = exact(MIXTURE, X, y)
    Phi = directions(MIXTURE, X)
    left = np.clip(
        y - MIXTURE.features.extend(X) @ MIXTURE.weights[:, 0] - MIXTURE.intercepts[0],
        -MIXTURE.clip,
        MIXTURE.clip,
    )
    A = np.einsum("nko,nlo->kl", Phi, Phi)
    assert symmetric(found["moments"], len(A)) == pytest.approx(A, abs=1e-3)
    assert found["products"] == pytest.approx(np.einsum("nko,n->k", Phi, left), abs=1e-3)
    assert found["squares"] == pytest.approx((left**2).sum(), abs=1e-3)


@pytest.mark.parametrize("question", [MIXTURE, CORRECTION], ids=["mixture", "correction"])
def test_no_pair_of_records_is_further_apart_than_the_plan_says(question):
    rng = np.random.default_rng(1)
    most = dict.fromkeys(question.plan.draws, 0.0)
    made = [
        exact(
            question, rng.uniform(-1, 1, size=(1, 2)) * rng.choice([0, 1, 9]), rng.choice([-1.0, 0.0, 1.0], 1)
        )
        for _ in range(80)
    ]
    for one in made:
        for other in made:
            for name in most:
                most[name] = max(most[name], float(np.linalg.norm(one[name] - other[name])))
    for name, far in most.items():
        assert 0.01 * question.plan.draws[name].sensitivity < far <= question.plan.draws[name].sensitivity


@pytest.mark.parametrize("question", [MIXTURE, CORRECTION], ids=["mixture", "correction"])
def test_the_draws_use_up_the_guarantee_and_more_rows_of_a_person_cost_more_noise(question):
    spent = np.sqrt(sum(draw.mu**2 for draw in question.plan.draws.values()))
    assert spent == pytest.approx(question.guarantee.gaussian_mu(), rel=1e-6)
    assert spent <= question.guarantee.gaussian_mu()
    person = replace(question.guarantee, unit=Unit(name="person", max_rows=3))
    three = replace(question, guarantee=person)
    for name in question.plan.draws:
        assert three.noise(name) == pytest.approx(3 * question.noise(name), rel=1e-4)


def test_bad_parameters_are_named():
    for change, message in (
        ({"radius": 0.0}, "radius"),
        ({"clip": -1.0}, "clip"),
        ({"features": None}, "features"),
        ({"directions": np.zeros((2, 2))}, "directions"),
        ({"weights": np.zeros((2, 1))}, "weights"),
        ({"size": 0}, "size"),
    ):
        with pytest.raises(InputError, match=message):
            replace(MIXTURE, **change)
    with pytest.raises(InputError, match="transform"):
        replace(CORRECTION, transform=np.zeros((1, 3)))
