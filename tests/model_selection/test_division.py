"""Divisions are secret, look at no row, and have the law that their proof is about."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from privada import Category, CellClassifier, Dataset, Number, Schema
from privada.exceptions import InputError
from privada.model_selection import PrivateKFold
from privada.model_selection.division import hold_out, noise_of_divisions, number_units
from privada.privacy.noise import Rehearsal
from privada.privacy.relation import Relation

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
SETTINGS = {"centers": [[0.2], [0.8]], "classes": (0, 1), "bounds": (0, 1), "epsilon": 0.5}
X = np.linspace(0, 1, 120)[:, None]
Y = np.arange(120) // 60
ALARM = 1e-6  # probability that a sound law fails one of these tests


def hold(n, relation, noise, share=0.2):
    return hold_out(np.arange(n), share=share, relation=relation, noise=noise)


@pytest.mark.statistical
def test_every_choice_of_so_many_units_is_equally_likely(rehearsal):
    """Replace-one: 6 choices of 2 units of 4."""
    counts = {}
    for _ in range(6000):
        held = tuple(hold(4, Relation.REPLACE_ONE, rehearsal, share=0.5))
        counts[held] = counts.get(held, 0) + 1
    assert all(sum(held) == 2 for held in counts)
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > ALARM


@pytest.mark.statistical
def test_under_add_remove_every_unit_is_held_out_by_itself(rehearsal):
    counts = np.zeros(8)
    for _ in range(8000):
        counts[hold(3, Relation.ADD_REMOVE, rehearsal, share=0.25) @ [1, 2, 4]] += 1
    law = [0.25 ** bin(k).count("1") * 0.75 ** (3 - bin(k).count("1")) for k in range(8)]
    assert stats.chisquare(counts, 8000 * np.array(law)).pvalue > ALARM


@pytest.mark.parametrize("relation", list(Relation))
def test_the_same_draw_divides_neighbours_alike_but_for_one_unit(relation):
    """The coupling of the proof: a division is a function of the number of units alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (hold(2000, relation, Rehearsal(5)) for _ in range(2))
        fewer = hold(1999, relation, Rehearsal(5))
    assert np.array_equal(first, second)
    assert first.sum() == 400 or relation is Relation.ADD_REMOVE
    if relation is Relation.ADD_REMOVE:  # the last row is the one that is not there
        assert np.array_equal(first[:-1], fewer)


@pytest.mark.statistical
def test_what_is_fitted_on_does_not_depend_on_the_order_of_the_file(rehearsal):
    """Labels that the old rule, by places, would have put on one side: 320 of 2,000 or none."""
    old = np.random.default_rng(0).permutation(2000) < 400
    labels = np.zeros(2000, dtype=int)
    labels[np.flatnonzero(old)[:320]] = 1  # sorted by a column, so are the rows of this table
    shifted = np.roll(labels, 1)  # as one replaced row does that goes from the end to the beginning
    assert labels[old].sum() == 320
    assert shifted[old].sum() < 100
    for order in (labels, shifted, np.sort(labels)):
        counts = [order[hold(2000, Relation.REPLACE_ONE, rehearsal)].sum() for _ in range(300)]
        law = stats.hypergeom(2000, 320, 400)
        assert abs(np.mean(counts) - law.mean()) < 5 * law.std() / np.sqrt(300)
        assert np.std(counts) == pytest.approx(law.std(), rel=0.3)


def test_persons_are_held_out_whole_and_in_a_fixed_number():
    people = np.array(["b", "a", "c", "d", "e"] * 20)
    units = number_units(100, people)
    held = hold_out(units, share=0.4, relation=Relation.REPLACE_ONE, noise=noise_of_divisions(None))
    assert len(set(people[held])) == 2
    assert not set(people[held]) & set(people[~held])
    with pytest.raises(InputError, match="one person for each private row"):
        number_units(3, people)
    with pytest.raises(InputError, match="too few"):
        hold(1, Relation.REPLACE_ONE, noise_of_divisions(None))


def test_folds_divide_all_rows_and_are_drawn_anew():
    folds = PrivateKFold(4)
    assert folds.get_n_splits(X) == 4
    first, second = ([test for _, test in folds.split(X)] for _ in range(2))
    assert np.array_equal(np.sort(np.concatenate(first)), np.arange(120))
    assert not all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    for train, test in folds.split(X):
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(120))
    seeded = [[test.tolist() for _, test in PrivateKFold(4, insecure_seed=3).split(X)] for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert (
        repr(folds)
        == "PrivateKFold(insecure_seed=None, n_splits=4, relation='add/remove',\n       schema=None)"
    )
    equal = PrivateKFold(7, relation="replace-one")
    assert sorted(len(test) for _, test in equal.split(X)) == [17] * 6 + [18]
    with pytest.raises(InputError, match="n_splits"):
        next(PrivateKFold(1).split(X))


@pytest.mark.statistical
def test_folds_of_rows_are_independent_and_equally_likely():
    sizes = np.zeros((3, 3))
    for _ in range(300):
        labels = np.zeros(120, dtype=int)
        for fold, (_, test) in enumerate(PrivateKFold(3).split(X)):
            labels[test] = fold
        np.add.at(sizes, (labels[:-1], labels[1:]), 1)
    assert stats.chisquare(sizes.ravel()).pvalue > ALARM


@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
def test_cross_validation_is_stated_with_private_folds_and_not_with_folds_by_place(relation):
    def fit(folds, **more):
        model = CellClassifier(**SETTINGS, relation=relation, size=80, **more)
        return cross_validate(model, X, Y, cv=folds, return_estimator=True)["estimator"]

    model = fit(PrivateKFold(3, relation=relation), dataset=Dataset(table="secret"))[0]
    assert model.spent_.epsilon == 1.0
    by_place = fit(KFold(3, shuffle=True, random_state=0), dataset=Dataset(table="by place"))
    for model in by_place:
        assert model.guarantee_.epsilon == 0.5
        with pytest.raises(InputError, match="PrivateKFold"):
            _ = model.spent_


def test_a_grid_search_counts_every_fit_of_a_row():
    model = CellClassifier(**SETTINGS)
    search = GridSearchCV(model, {"centers": [[[0.2], [0.8]], [[0.5]]]}, cv=PrivateKFold(5)).fit(X, Y)
    assert search.best_estimator_.spent_.epsilon == 4.5


def test_persons_and_schemas_and_named_columns_are_recognised():
    people = np.arange(120) // 3
    model = CellClassifier(**SETTINGS, dataset=Dataset(max_rows=3, table="persons"))
    found = cross_validate(
        model, X, Y, cv=PrivateKFold(3), groups=people, params={"person": people}, return_estimator=True
    )["estimator"]
    assert found[0].spent_.epsilon == 1.0
    frame = pd.DataFrame({"ward": np.repeat(["a", "b"], 60), "age": np.linspace(1, 89, 120)})
    schema = Schema(columns=[Category(name="ward", values=("a", "b")), Number(name="age", low=0, high=90)])
    encoded = schema.encode(frame)
    model = CellClassifier([encoded[0], encoded[-1]], classes=(0, 1), schema=schema, epsilon=0.5)
    model.set_params(dataset=Dataset(table="encoded"))
    found = cross_validate(model, frame, Y, cv=PrivateKFold(3, schema=schema), return_estimator=True)
    assert found["estimator"][0].spent_.epsilon == 1.0
    named = pd.DataFrame({"v": X[:, 0], "u": 1 - X[:, 0]})
    model = CellClassifier(**(SETTINGS | {"centers": [[0.2, 0.2], [0.8, 0.8]]}))
    found = cross_validate(model, named, Y, cv=PrivateKFold(3), return_estimator=True)["estimator"]
    assert found[0].spent_.epsilon == 1.0
    assert model.fit(named[["u", "v"]], Y).spent_.epsilon == 1.5
