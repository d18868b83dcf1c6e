"""What is asked of a hidden target, and what to expect of it."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.marginals import (
    CellCounts,
    ErrorTables,
    MarginalsDescent,
    OutcomeTables,
    Public,
    default_regression,
    forecast_error,
    make_inquiry,
)
from privada.privacy import ZCDP, ApproxDP, PureDP

PURE = PureDP(epsilon=1, relation="add/remove")
LOOSE = ApproxDP(epsilon=1, delta=1e-4, relation="add/remove")
PUBLIC = Public(source=np.random.default_rng(0).uniform(size=(90, 3)), classes=(0, 1))
THREE = Public(source=PUBLIC.source, classes=(0, 1, 2))


def asked(question, guarantee, public=PUBLIC, size=300):
    learner = make_inquiry(question, "o", public, guarantee=guarantee, size=size)
    return [ask.question for ask in learner.asks]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("rates", "Expected algorithm to be one of auto, cells, descent, marginals"),
        (7, "Expected algorithm to be one of"),
        (ErrorTables(stop=0.1), "Expected stop=0 for one round"),
        (ErrorTables(stop=-0.1, rounds=2), "Expected stop between 0 and 1"),
        (ErrorTables(estimate="best"), "Expected estimate to be one of"),
        (ErrorTables(reweight="no"), "Expected reweight to be true or false"),
        (CellCounts(reweight="no"), "Expected reweight to be true or false"),
        (CellCounts(cells=1), "Expected cells"),
        ("descent", r"A descent is asked for \(epsilon, delta\) or rho"),
    ],
    ids=str,
)
def test_settings_are_refused_by_name(question, message):
    with pytest.raises(InputError, match=message):
        asked(question, PURE)


@pytest.mark.parametrize(("size", "message"), [(0, "Expected size"), (10**12, "at most 1000000000 rows")])
def test_a_size_that_cannot_be_is_refused(size, message):
    with pytest.raises(InputError, match=message):
        asked("auto", LOOSE, size=size)
    with pytest.raises(InputError, match=message):
        default_regression(PUBLIC.source, guarantee=PURE, size=size)


@pytest.mark.parametrize("guarantee", [LOOSE, ZCDP(rho=0.1, relation="replace-one")], ids=str)
def test_the_default_descends_where_gaussian_noise_is_allowed(guarantee):
    for public in (PUBLIC, THREE):
        (question,) = asked("auto", guarantee, public)
        assert isinstance(question, MarginalsDescent)
        assert question.outputs == len(public.classes)


def test_the_default_counts_labels_over_cells_under_a_pure_guarantee():
    (question,) = asked("auto", PURE)
    assert isinstance(question, OutcomeTables)
    assert question.count == "labels"
    (signed,) = asked(CellCounts(cells=9, reweight=False), PURE)
    assert (signed.count, signed.tables[0].n_cells) == ("signed", 9)


def test_settings_of_rounds_reach_the_plan():
    first, *later = asked(ErrorTables(rounds=3, bins=4, chosen=2), PURE)
    assert [len(question.tables) for question in (first, *later)] == [3, 2, 2]
    assert {table.n_cells for table in first.tables} == {4}


def test_several_classes_are_heard_by_joint_tables_alone():
    (question,) = asked("marginals", PURE, THREE)
    assert question.count == "classes"
    with pytest.raises(InputError, match="counted by joint tables alone"):
        asked(ErrorTables(separate=True), PURE, THREE)


SOURCE = np.random.default_rng(0).normal(size=(300, 6))
LOOSE_FORECAST = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")


def together(classes=(0, 1)):
    """A source whose columns nearly say the same."""
    return Public(source=SOURCE[:, :1] + 0.1 * SOURCE, classes=classes)


@pytest.mark.parametrize("classes", [(0, 1), ()], ids=["classes", "a number"])
@pytest.mark.parametrize("guarantee", [LOOSE_FORECAST, PureDP(epsilon=1, relation="add/remove")], ids=str)
def test_more_rows_are_expected_to_help(classes, guarantee):
    few, many = (forecast_error(together(classes), guarantee=guarantee, size=n) for n in (100, 10_000))
    assert many.ratio < few.ratio < 1
    assert all(each.low < each.ratio < each.high for each in (few, many))


def test_nothing_is_expected_of_next_to_no_rows():
    for classes in ((0, 1), ()):
        public = Public(source=SOURCE, classes=classes)
        assert not forecast_error(public, guarantee=LOOSE_FORECAST, size=10).worthwhile


def test_classes_are_easier_where_columns_move_together():
    even = Public(source=SOURCE, classes=(0, 1))
    one, other = (
        forecast_error(public, guarantee=LOOSE_FORECAST, size=500).ratio for public in (together(), even)
    )
    assert one < other


def test_a_source_without_variation_promises_as_little_as_an_even_one():
    flat, even = (Public(source=rows, classes=(0, 1)) for rows in (np.ones((5, 3)), SOURCE))
    one, other = (forecast_error(public, guarantee=LOOSE_FORECAST, size=500).ratio for public in (flat, even))
    assert one >= other
