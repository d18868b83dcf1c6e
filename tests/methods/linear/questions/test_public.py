"""What questions about linear models share: read-only public arrays, named refusals, and exact splits."""

import math

import numpy as np
import pytest

from privada.exceptions import InputError, RelationError
from privada.methods.linear.questions import public
from privada.parties import Category, Number, Schema
from privada.privacy import ZCDP, ApproxDP, PureDP
from privada.privacy.accounting import accountant
from privada.privacy.guarantee import split_budget

ONE = ApproxDP(epsilon=1.0, delta=1e-5, relation="replace-one")


def test_public_arrays_are_copies_that_cannot_be_written_to():
    mine = np.ones((2, 2))
    kept = public.matrix(weights=mine)
    mine[0, 0] = 7
    assert kept[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones((2, 2)), "a vector of length 3"),
        (np.ones(2), "a vector of length 3"),
        (np.array([1.0, np.nan, 1.0]), "finite"),
        (np.array([1.0, np.inf, 1.0]), "finite"),
        (np.array([1.0, 1e101, 1.0]), "within"),
    ],
)
def test_vectors_are_refused_by_name(wrong, message):
    with pytest.raises(InputError, match=f"shift.*{message}"):
        public.vector(shift=wrong, length=3)


def test_only_replace_one_and_no_pure_guarantee():
    public.replaced(ONE)
    public.gaussian(ONE, "A descent")
    with pytest.raises(RelationError, match="replace-one"):
        public.replaced(ZCDP(rho=1, relation="add/remove"))
    with pytest.raises(InputError, match="A descent is asked for"):
        public.gaussian(PureDP(epsilon=1, relation="replace-one"), "A descent")


def test_sizes_widths_and_labels_of_a_schema_are_checked():
    schema = Schema.of_numbers(bounds=(0, 1), width=2, size=9, label=Number(name="y", low=0, high=1))
    public.declared(9, schema, 2)
    public.numeric_label(schema)
    for size, width in ((8, 2), (9, 3)):
        with pytest.raises(InputError):
            public.declared(size, schema, width)
    for label in (None, Category(name="y", values=(0, 1)), Number(name="y", low=0, high=1, missing=True)):
        with pytest.raises(InputError, match="numeric label"):
            public.numeric_label(Schema.of_numbers(bounds=(0, 1), width=2, label=label))


@pytest.mark.parametrize("count", [1, 3, 50])
def test_equal_sums_use_up_the_guarantee_and_no_more(count):
    names = tuple(f"g{number}" for number in range(count))
    plan = public.equal_sums(names, reach=0.3, guarantee=ONE)
    assert tuple(plan.draws) == names
    assert len({id(draw) for draw in plan.draws.values()}) == 1
    assert accountant.satisfies(plan.event, ONE)
    assert accountant.gaussian_mu(plan.event) == pytest.approx(ONE.gaussian_mu(), rel=1e-5)
    together = math.sqrt(sum(draw.mu**2 for draw in plan.draws.values()))
    assert accountant.gaussian_mu(plan.event) >= together * (1 - 1e-12)


@pytest.mark.parametrize(("unit", "scale"), [(1.0, 1.0), (1e-30, 1e9), (1e9, 1e-30), (0.3, 7.0)])
def test_grids_are_finer_than_unit_and_noise_within_what_integers_hold(unit, scale):
    step = public.fine_grid(unit, scale).step
    assert unit / step < 2**53
    assert scale / step < 2**53


@pytest.mark.parametrize("part", [0.01, 0.5, 0.9])
def test_shares_compose_to_the_whole(part):
    first, rest = public.shares(ONE, part)
    assert math.hypot(first.gaussian_mu(), rest.gaussian_mu()) <= ONE.gaussian_mu() * (1 + 1e-9)
    assert first.gaussian_mu() == pytest.approx(math.sqrt(part) * ONE.gaussian_mu())
    assert public.shares(ONE, 0) == (None, ONE)
    one, other = split_budget(ONE, part)
    assert ZCDP(rho=one.rho + other.rho, relation=ONE.relation).epsilon_at(ONE.delta) <= ONE.epsilon


def test_what_no_memory_holds_is_refused():
    public.few_numbers(public.MOST_NUMBERS, "all gradients")
    with pytest.raises(InputError, match="numbers in all gradients"):
        public.few_numbers(public.MOST_NUMBERS + 1, "all gradients")
