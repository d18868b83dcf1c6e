"""What several uses of the same rows cost together, whenever somebody stops."""

import itertools
import math

import dp_accounting
import numpy as np
import pytest
from scipy.stats import norm

from privada.exceptions import InputError, RelationError
from privada.privacy import ZCDP, ApproxDP, Price, PureDP, Unit
from privada.privacy.accounting import curves
from privada.privacy.accounting.odometer import STATED_DELTA, Use, add_statements, state_total, weakest

ADD, REPLACE = "add/remove", "replace-one"


def pure(epsilon, relation=ADD, **more):
    guarantee = PureDP(epsilon=epsilon, relation=relation, **more)
    return Use(
        guarantee=guarantee,
        prices=(
            Price(event=dp_accounting.LaplaceDpEvent(1 / epsilon), guarantee=guarantee, epsilon=epsilon),
        ),
    )


def gaussian(epsilon, delta=1e-5, relation=ADD):
    guarantee = ApproxDP(epsilon=epsilon, delta=delta, relation=relation)
    sigma = curves.gaussian_sigma(epsilon=epsilon, delta=delta)
    return Use(
        guarantee=guarantee, prices=(Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=guarantee),)
    )


def concentrated(rho, relation=ADD):
    guarantee = ZCDP(rho=rho, relation=relation)
    event = dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho))
    return Use(guarantee=guarantee, prices=(Price(event=event, guarantee=guarantee),))


def test_one_use_is_its_own_guarantee():
    for use in (pure(0.3), gaussian(1.0), concentrated(0.1)):
        assert state_total([use]) == use.guarantee


def test_epsilons_add_up():
    assert state_total([pure(0.25), pure(0.5), pure(0.25)]) == PureDP(epsilon=1, relation=ADD)


def test_gaussians_cost_less_than_their_epsilons_and_no_less_than_their_composition():
    for count in (2, 5, 20, 100):
        found = state_total([gaussian(1.0)] * count)
        mu = curves.gaussian_mu(epsilon=1, delta=1e-5) * math.sqrt(count)
        assert curves.gaussian_epsilon(found.delta, mu) < found.epsilon < count
        assert found.delta == pytest.approx(2e-5)


def test_the_statement_holds_for_somebody_who_stops_when_it_looks_good():
    """E[(1 - exp(ε(T) - L))₊] ≤ δ for the best stopping rule against Gaussian answers, on a grid."""
    delta, most = 1e-3, 12
    use = gaussian(1.0, delta)
    mu = curves.gaussian_mu(epsilon=1.0, delta=delta)
    stated = [state_total([use] * count).epsilon for count in range(1, most + 1)]
    losses = np.linspace(-25, 25, 4001)
    gain = np.maximum(0.0, 1 - np.exp(stated[-1] - losses))
    kernel = norm.pdf(losses[None, :] - losses[:, None], loc=mu**2 / 2, scale=mu) * (losses[1] - losses[0])
    for epsilon in reversed(stated[:-1]):
        gain = np.maximum(kernel @ gain, np.maximum(0.0, 1 - np.exp(epsilon - losses)))
    first = float(np.interp(0.0, losses, kernel @ gain))
    assert delta * 0.5 < first <= 2 * delta  # the first fit alone takes δ exactly


def test_rho_is_stated_at_a_delta_because_its_sum_is_no_rho():
    found = state_total([concentrated(0.1), concentrated(0.1)])
    assert found.delta == pytest.approx(2 * STATED_DELTA)
    assert found.epsilon > curves.zcdp_epsilon(2 * STATED_DELTA, 0.2)


def test_pure_uses_before_the_first_other_one_add_to_it():
    found, alone = state_total([pure(0.5), gaussian(1.0)]), state_total([gaussian(1.0)] * 2)
    assert found.delta == pytest.approx(1e-5)
    assert 0.5 + 1.0 < found.epsilon < 0.5 + alone.epsilon
    assert state_total([gaussian(1.0), pure(0.5)]).epsilon < 1.5 + 0.5


def test_order_of_later_uses_does_not_matter_and_more_uses_never_cost_less():
    uses = [gaussian(1.0), pure(0.2), concentrated(0.05), pure(0.7)]
    found = {round(state_total([uses[0], *rest]).epsilon, 9) for rest in itertools.permutations(uses[1:])}
    assert len(found) == 1
    totals = [state_total(uses[: count + 1]).epsilon for count in range(1, 4)]
    assert totals == sorted(totals)


def test_relations_are_joined_and_units_are_not():
    mixed = state_total([pure(0.5), pure(0.5, REPLACE)])
    assert mixed == PureDP(epsilon=1.5, relation=REPLACE)
    with pytest.raises(RelationError, match="no common guarantee"):
        state_total([pure(0.5), pure(0.5, unit=Unit(name="person", max_rows=2))])
    with pytest.raises(InputError, match="at least one use"):
        state_total([])


def test_the_weakest_follows_from_all():
    some = [
        PureDP(epsilon=1, relation=ADD),
        ApproxDP(epsilon=0.5, delta=1e-6, relation=ADD),
        ZCDP(rho=0.2, relation=REPLACE),
    ]
    for guarantees in itertools.permutations(some):
        found = weakest(guarantees)
        assert all(each.implies(found) for each in guarantees)
    assert weakest(some[:1] * 2) == some[0]


def test_statements_of_other_answers_add_up():
    pure = PureDP(epsilon=0.5, relation="add/remove")
    loose = ApproxDP(epsilon=1.0, delta=1e-6, relation="add/remove")
    rho = ZCDP(rho=0.1, relation="add/remove")
    assert add_statements([rho]) is rho
    assert add_statements([pure, pure]) == PureDP(epsilon=1.0, relation="add/remove")
    both = add_statements([pure, loose, loose])
    assert (both.epsilon, both.delta) == (2.5, 2e-6)
    mixed = add_statements([loose, rho])
    assert mixed.epsilon == pytest.approx(1 + curves.zcdp_epsilon(STATED_DELTA, 0.1))
    assert mixed.delta == 1e-6 + STATED_DELTA
    replaced = add_statements([pure, PureDP(epsilon=0.25, relation="replace-one")])
    assert replaced == PureDP(epsilon=1.25, relation="replace-one")
    person = PureDP(epsilon=0.5, relation="add/remove", unit=Unit(name="person", max_rows=2))
    with pytest.raises(RelationError, match="no sum"):
        add_statements([pure, person])


@pytest.mark.parametrize(("a", "b"), [(a, b) for a in (-2.0, -0.1, 0.0, 0.3) for b in (-1.0, 0.0, 2.0)])
def test_the_inequality_that_their_proof_uses(a, b):
    excess = [max(0.0, 1 - math.exp(each)) for each in (a + b, a, b)]
    assert excess[0] <= excess[1] + excess[2] + 1e-15
