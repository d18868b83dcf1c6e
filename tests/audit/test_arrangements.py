"""Arranged neighbours differ by one unit, keep announced sizes, and hold what single rows cannot show."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from privada.audit import Sample, arranged_neighbours, growing_crowds
from privada.parties.schema import Category, Schema
from privada.privacy import Relation

LABEL = Category(name="y", values=(0, 1))
SCHEMA = Schema.of_numbers(bounds=(0, 1), width=2, label=LABEL)
ROWS = np.random.default_rng(0).uniform(size=(20, 2)), np.arange(20) % 2


def sample(**more):
    schema = replace(SCHEMA, **more)
    person = np.arange(20) // 2 if schema.person_id else None
    return Sample.of(ROWS[0], schema=schema, y=ROWS[1], person=person)


def pairs(start, relation):
    return list(arranged_neighbours(start, relation=relation, rng=np.random.default_rng(1)))


def units(side):
    if side.person is None:
        return Counter((repr(x.tolist()), y) for x, y in zip(side.X, side.y, strict=True))
    rows = zip(side.X, side.y, side.person, strict=True)
    owned = [(p, repr(x.tolist()), y) for x, y, p in rows]
    return Counter((p, tuple(sorted(row for row in owned if row[0] == p))) for p in set(side.person))


@pytest.mark.parametrize("person", [{}, {"person_id": "who", "max_rows": 1}], ids=["rows", "persons"])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_pairs_differ_by_one_unit(relation, person):
    allowed = {(0, 1), (1, 0)} if relation is Relation.ADD_REMOVE else {(1, 1), (0, 0)}
    found = pairs(sample(**person), relation)
    assert len(found) >= 5
    for pair in found:
        a, b = units(pair.sample), units(pair.neighbour)
        assert (sum((a - b).values()), sum((b - a).values())) in allowed, pair.name


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ATTRIBUTE], ids=str)
def test_an_announced_size_is_kept(relation):
    for pair in pairs(sample(size=20), relation):
        assert len(pair.sample) == len(pair.neighbour) == 20, pair.name


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_every_arrangement_is_there(relation):
    kinds = ("in a crowd", "alternating", "far from all others", "sorted", "all alike", "alone")
    names = [pair.name for pair in pairs(sample(), relation)]
    assert all(any(name.endswith(kind) for name in names) for kind in kinds)


def test_a_replaced_record_may_stand_elsewhere():
    for start in (sample(), sample(person_id="who", max_rows=1)):
        moved = [pair for pair in pairs(start, "replace-one") if pair.reordered]
        assert moved
        assert any((a.X[0] != b.X[0]).any() for a, b in ((pair.sample, pair.neighbour) for pair in moved))


def test_rows_far_apart_share_no_value_with_the_changed_one():
    pair = next(pair for pair in pairs(sample(), "attribute") if pair.name.endswith("far from all others"))
    assert (pair.sample.X[1:, 1] != pair.sample.X[0, 1]).all()


@pytest.mark.parametrize("person", [{}, {"person_id": "who", "max_rows": 1}], ids=["rows", "persons"])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_growing_crowds_go_from_neighbour_to_neighbour(relation, person):
    allowed = {(0, 1)} if relation is Relation.ADD_REMOVE else {(1, 1), (0, 0)}
    chains = list(growing_crowds(sample(**person), relation=relation, rng=np.random.default_rng(1)))
    assert len(chains) >= 3
    for chain in chains:
        for before, after in pairwise(map(units, chain.samples)):
            assert (sum((before - after).values()), sum((after - before).values())) in allowed, chain.name


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_every_number_of_equal_rows_up_to_a_few_dozen_is_reached(relation):
    for chain in growing_crowds(sample(), relation=relation, rng=np.random.default_rng(1)):
        last = units(chain.samples[-1]).most_common(1)[0][0]
        copies = [units(side)[last] for side in chain.samples]
        assert copies == list(range(copies[0], copies[0] + len(copies)))
        assert copies[0] <= 1
        assert copies[-1] >= 40


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ATTRIBUTE], ids=str)
def test_growing_crowds_keep_an_announced_size(relation):
    chains = growing_crowds(sample(size=20), relation=relation, rng=np.random.default_rng(1))
    assert all(len(side) == 20 for chain in chains for side in chain.samples)
