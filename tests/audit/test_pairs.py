"""Neighbours that break careless proofs: random, special, arranged, and in growing crowds."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from privada.audit import Sample, across_batches, arranged_neighbours, growing_crowds, neighbours
from privada.exceptions import InputError
from privada.parties.rows import BATCH
from privada.parties.schema import Category, Number, Schema
from privada.privacy import Relation

MIXED = Schema(
    columns=[Number(name="age", low=0, high=120, missing=True), Category(name="sex", values=("f", "m"))],
    label=Category(name="ill", values=("no", "yes")),
)
PEOPLE = Schema(columns=[Number(name="x", low=-1, high=1)], person_id="who", max_rows=2)


def mixed():
    X = np.array([[30.0, "f"], [40.0, "m"], [np.nan, "f"]], dtype=object)
    return Sample.of(X, schema=MIXED, y=["no", "yes", "no"])


def people():
    who = np.array(["ann", "bob", "ann", "ann", "cy"])
    return Sample.of(np.linspace(-1, 1, 5)[:, None], schema=PEOPLE, person=who)


def pairs(sample, relation, **options):
    return list(neighbours(sample, relation=relation, rng=np.random.default_rng(1), **options))


def units(sample):
    """Rows of each unit as a multiset: without persons every row is a unit."""
    labels = sample.y if sample.y is not None else [None] * len(sample)
    rows = [(repr(list(x)), y) for x, y in zip(sample.X, labels, strict=True)]
    if sample.person is None:
        return Counter(rows)
    owned = list(zip(rows, sample.person, strict=True))
    return Counter((p, tuple(sorted(row for row, q in owned if q == p))) for p in set(sample.person))


@pytest.mark.parametrize("make", [mixed, people])
@pytest.mark.parametrize("relation", list(Relation))
def test_pairs_differ_by_one_unit(make, relation):
    allowed = {(0, 1), (1, 0)} if relation is Relation.ADD_REMOVE else {(1, 1), (0, 0)}
    found = pairs(make(), relation)
    assert len(found) >= 2
    for pair in found:
        a, b = units(pair.sample), units(pair.neighbour)
        assert (sum((a - b).values()), sum((b - a).values())) in allowed, pair.name


def test_attribute_pairs_change_one_column():
    for pair in pairs(mixed(), "attribute"):
        columns = zip(pair.sample.X.T.tolist(), pair.neighbour.X.T.tolist(), strict=True)
        same = [repr(a) == repr(b) for a, b in columns] + [list(pair.sample.y) == list(pair.neighbour.y)]
        assert same.count(False) == 1, pair.name


def test_pairs_can_be_read_by_the_schema(rehearsal):
    for make in (mixed, people):
        for relation in Relation:
            for pair in pairs(make(), relation):
                pair.sample.rows(rehearsal).check()
                pair.neighbour.rows(rehearsal).check()


def test_adversarial_rows_are_among_them():
    names = {pair.name for pair in pairs(mixed(), "add/remove")}
    assert names >= {
        "remove the first row",
        "remove the last row",
        "add a duplicate",
        "add the low corner",
        "add a far outlier",
        "add a missing value",
        "add a first row",
        "add the only row",
    }
    outliers = [pair for pair in pairs(people(), "add/remove") if "6 times a far outlier" in pair.name]
    assert len(outliers[0].neighbour) == len(outliers[0].sample) + 6
    assert outliers[0].neighbour.X.max() >= 1e6


def test_persons_are_bounded_before_they_are_compared():
    """Otherwise rows would be dropped at random, differently on each side."""
    assert all(Counter(pair.sample.person)["ann"] <= 2 for pair in pairs(people(), "add/remove"))


def test_equal_seeds_give_equal_pairs():
    for a, b in zip(pairs(mixed(), "replace-one"), pairs(mixed(), "replace-one"), strict=True):
        assert units(a.neighbour) == units(b.neighbour)


def test_a_pair_can_cross_a_batch():
    sample = Sample.of(np.arange(3.0)[:, None], schema=Schema.of_numbers(bounds=(0, 3), width=1))
    added = across_batches(sample, relation="add/remove")
    assert (len(added.sample), len(added.neighbour)) == (BATCH + 1, BATCH)
    assert len(across_batches(sample, relation="replace-one").neighbour) == BATCH + 1
    with pytest.raises(InputError, match="unit is a row"):
        across_batches(people(), relation="add/remove")


LABEL = Category(name="y", values=(0, 1))
SCHEMA = Schema.of_numbers(bounds=(0, 1), width=2, label=LABEL)
ROWS = np.random.default_rng(0).uniform(size=(20, 2)), np.arange(20) % 2


def sample(**more):
    schema = replace(SCHEMA, **more)
    person = np.arange(20) // 2 if schema.person_id else None
    return Sample.of(ROWS[0], schema=schema, y=ROWS[1], person=person)


def arranged_pairs(start, relation):
    return list(arranged_neighbours(start, relation=relation, rng=np.random.default_rng(1)))


def labelled_units(side):
    if side.person is None:
        return Counter((repr(x.tolist()), y) for x, y in zip(side.X, side.y, strict=True))
    rows = zip(side.X, side.y, side.person, strict=True)
    owned = [(p, repr(x.tolist()), y) for x, y, p in rows]
    return Counter((p, tuple(sorted(row for row in owned if row[0] == p))) for p in set(side.person))


@pytest.mark.parametrize("person", [{}, {"person_id": "who", "max_rows": 1}], ids=["rows", "persons"])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_arranged_pairs_differ_by_one_unit(relation, person):
    allowed = {(0, 1), (1, 0)} if relation is Relation.ADD_REMOVE else {(1, 1), (0, 0)}
    found = arranged_pairs(sample(**person), relation)
    assert len(found) >= 5
    for pair in found:
        a, b = labelled_units(pair.sample), labelled_units(pair.neighbour)
        assert (sum((a - b).values()), sum((b - a).values())) in allowed, pair.name


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ATTRIBUTE], ids=str)
def test_an_announced_size_is_kept(relation):
    for pair in arranged_pairs(sample(size=20), relation):
        assert len(pair.sample) == len(pair.neighbour) == 20, pair.name


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_every_arrangement_is_there(relation):
    kinds = ("in a crowd", "alternating", "far from all others", "sorted", "all alike", "alone")
    names = [pair.name for pair in arranged_pairs(sample(), relation)]
    assert all(any(name.endswith(kind) for name in names) for kind in kinds)


def test_a_replaced_record_may_stand_elsewhere():
    for start in (sample(), sample(person_id="who", max_rows=1)):
        moved = [pair for pair in arranged_pairs(start, "replace-one") if pair.reordered]
        assert moved
        assert any((a.X[0] != b.X[0]).any() for a, b in ((pair.sample, pair.neighbour) for pair in moved))


def test_rows_far_apart_share_no_value_with_the_changed_one():
    pair = next(
        pair for pair in arranged_pairs(sample(), "attribute") if pair.name.endswith("far from all others")
    )
    assert (pair.sample.X[1:, 1] != pair.sample.X[0, 1]).all()


@pytest.mark.parametrize("person", [{}, {"person_id": "who", "max_rows": 1}], ids=["rows", "persons"])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_growing_crowds_go_from_neighbour_to_neighbour(relation, person):
    allowed = {(0, 1)} if relation is Relation.ADD_REMOVE else {(1, 1), (0, 0)}
    chains = list(growing_crowds(sample(**person), relation=relation, rng=np.random.default_rng(1)))
    assert len(chains) >= 3
    for chain in chains:
        for before, after in pairwise(map(labelled_units, chain.samples)):
            assert (sum((before - after).values()), sum((after - before).values())) in allowed, chain.name


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_every_number_of_equal_rows_up_to_a_few_dozen_is_reached(relation):
    for chain in growing_crowds(sample(), relation=relation, rng=np.random.default_rng(1)):
        last = labelled_units(chain.samples[-1]).most_common(1)[0][0]
        copies = [labelled_units(side)[last] for side in chain.samples]
        assert copies == list(range(copies[0], copies[0] + len(copies)))
        assert copies[0] <= 1
        assert copies[-1] >= 40


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ATTRIBUTE], ids=str)
def test_growing_crowds_keep_an_announced_size(relation):
    chains = growing_crowds(sample(size=20), relation=relation, rng=np.random.default_rng(1))
    assert all(len(side) == 20 for chain in chains for side in chain.samples)
