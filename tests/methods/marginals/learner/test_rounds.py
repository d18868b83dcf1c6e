"""Plans of rounds are refused by name, before anything is asked."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from privada.exceptions import InputError
from privada.methods.cells import Bins, GridCells
from privada.methods.marginals import Public, Rounds, default_rounds, feature_bins, learn_rounds
from privada.privacy import ZCDP, PureDP

PURE = PureDP(epsilon=1, relation="add/remove")
SOURCE = np.random.default_rng(0).uniform(size=(80, 4))
BINS = feature_bins(SOURCE, 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"questions": (BINS,) * 3}, "as many guarantees, got 3 and 2"),
        ({"guarantees": (PURE,) * 3}, "as many guarantees, got 2 and 3"),
        ({"questions": (), "guarantees": ()}, "questions of at least one round"),
        ({"questions": BINS[:2]}, "Expected questions to have a tuple of partitions"),
        ({"questions": (BINS, ())}, "at least one partition for each round"),
        ({"guarantees": (PURE, 1.0)}, "to be guarantees, got 1.0"),
        ({"guarantees": (PURE, PureDP(epsilon=1, relation="replace-one"))}, "one relation"),
        ({"importance": ZCDP(rho=1, relation="replace-one")}, "one relation"),
        ({"count": "labels"}, "Expected count to be one of classes, errors, signed"),
        ({"count": "signed"}, "Expected size, or an importance query"),
        ({"count": "signed", "size": -3.0}, "Expected size > 0"),
        ({"estimate": "smoth"}, "Expected estimate to be one of"),
        ({"count": "classes", "estimate": "cumulative"}, 'estimate="smooth" for count="classes"'),
        ({"reweight": "no"}, "Expected reweight"),
        ({"stop": 2}, "Expected stop between 0 and 1"),
        ({"chosen": 0}, "Expected chosen"),
        ({"chosen": 1, "questions": (BINS, BINS[1:])}, "same features in every round"),
        ({"chosen": 1, "questions": (BINS[:2], BINS[1:3])}, "same features in every round"),
    ],
    ids=str,
)
def test_a_plan_that_does_not_hold_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Rounds(**({"questions": (BINS, BINS), "guarantees": (PURE, PURE)} | wrong))


@pytest.mark.parametrize(
    ("tables", "classes", "message"),
    [
        (BINS, (0, 1, 2), 'Expected count="classes" for 3 classes'),
        ((Bins(feature=9, edges=np.zeros(1)),), (0, 1), "Expected feature below 4, got 9"),
    ],
    ids=["classes", "features"],
)
def test_a_plan_is_held_against_classes_and_rows_before_the_first_question(tables, classes, message):
    plan = Rounds(questions=(BINS, tables), guarantees=(PURE, PURE))
    public = Public(source=SOURCE, classes=classes, classifier=LogisticRegression())
    with pytest.raises(InputError, match=message):
        next(learn_rounds("o", plan, public))


def test_features_are_chosen_from_those_that_the_first_round_drew():
    source = np.random.default_rng(0).uniform(size=(80, 9))
    settings = {"guarantee": PURE, "size": 500, "rounds": 3, "features": 3, "seed": 1}
    plan = default_rounds(source, chosen=1, **settings)

    def asked(plan):
        return [[table.feature for table in tables] for tables in plan.questions]

    assert asked(plan) == [asked(plan)[0]] * 3
    drawn = default_rounds(source, **settings)
    assert asked(drawn)[0] == asked(plan)[0]
    assert asked(drawn)[1] != asked(drawn)[0]


def test_moved_edges_and_grids_may_be_chosen_from():
    grids = [
        [GridCells(factors=feature_bins(SOURCE, 2, pair, shift=shift)) for pair in ((0, 1), (1, 2))]
        for shift in (-0.2, 0.2)
    ]
    assert Rounds(questions=tuple(grids), guarantees=(PURE, PURE), chosen=1).chosen == 1
