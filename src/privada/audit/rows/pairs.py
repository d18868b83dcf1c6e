"""Neighbouring data sets to audit with: random ones, and the ones that break careless proofs.

Rows that are duplicated, in the corners of the public box, far outside it, on a
public centre or edge, half-way between two centres, first or last (so that
every other row's place shifts), alone, in a crowd of such rows, and across a
batch's end; persons with
one row, with as many as allowed, alike or across the box, and with three times as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import AnyArray
from privada.audit.rows.records import above, across, below, high, low, records
from privada.audit.rows.sample import Sample
from privada.exceptions import InputError
from privada.parties.rows import BATCH
from privada.privacy.relation import Relation

Generator = np.random.Generator
Records = dict[str, Sample]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring samples and what is special about them.

    ``reordered`` says that common rows have other places in the two samples. They are still neighbours,
    because a data set is a set of rows.
    """

    name: str
    sample: Sample
    neighbour: Sample
    reordered: bool = False


def neighbours(
    sample: Sample, *, relation: Relation | str, rng: Generator, landmarks: AnyArray | None = None
) -> Iterator[Pair]:
    """Random and adversarial neighbours of a sample under a relation; the unit is the schema's.

    Parameters
    ----------
    sample : Sample
    relation : Relation
    rng : numpy Generator
        Public randomness.
    landmarks : array, optional
        Rows that are special to a question, see `privada.audit.landmarks`.

    Examples
    --------
    >>> from privada.parties.schema import Schema
    >>> schema = Schema.of_numbers(bounds=(0, 1), width=2)
    >>> pairs = neighbours(Sample.of(np.full((9, 2), 0.5), schema=schema), relation="add/remove",
    ...                    rng=np.random.default_rng(0))
    >>> {len(pair.neighbour) - len(pair.sample) for pair in pairs} == {-1, 1}
    True
    """
    if not len(sample):
        raise InputError("Expected a sample with at least one row.")
    special = dict(records(sample, rng, landmarks))
    person = sample.schema.person_id is not None
    make = _PERSONS[Relation.parse(relation)] if person else _ROWS[Relation.parse(relation)]
    yield from make(_bounded(sample) if person else sample, special, rng)


def across_batches(sample: Sample, *, relation: Relation | str) -> Pair:
    """A pair so large that a change of the first row moves another one into the next batch.

    Rows are repeated; the unit must be a row.
    """
    if sample.schema.person_id is not None:
        raise InputError("Expected a schema whose unit is a row.")
    large = sample.take(np.arange(BATCH + 1) % len(sample))
    if Relation.parse(relation) is Relation.ADD_REMOVE:
        return Pair("remove the first of more than a batch", large, large.without([0]))
    return Pair("replace the first of more than a batch", large, large.replaced(0, large.take([BATCH // 2])))


def _added(sample: Sample, special: Records, rng: Generator) -> Iterator[Pair]:
    for place, index in {
        "first": 0,
        "last": len(sample) - 1,
        "random": int(rng.integers(len(sample))),
    }.items():
        yield Pair(f"remove the {place} row", sample, sample.without([index]))
    for name, record in special.items():
        at = _place(len(sample) + 1, rng)
        yield Pair(f"add {name}", sample, sample.with_rows(record, at=at))
    corner = special["the high corner"]
    yield Pair("add a first row", sample, sample.with_rows(corner, at=0))
    yield Pair("add the only row", corner.without([0]), corner)
    many = crowd(special)
    yield Pair("add a first row to a crowd", many, many.with_rows(corner, at=0))
    yield Pair("remove the first row of a crowd", many, many.without([0]))


def crowd(special: Records) -> Sample:
    """Every special row three times: what one row's place decides, such as a tie, moves many."""
    first, *others = special.values()
    for other in others:
        first = first.with_rows(other, at=len(first))
    return first.take(np.repeat(np.arange(len(first)), 3))


def _place(places: int, rng: Generator) -> int:
    """The first, the last or any place."""
    return (0, places - 1, int(rng.integers(places)))[rng.integers(3)]


def _replaced(sample: Sample, special: Records, rng: Generator) -> Iterator[Pair]:
    low = special["the low corner"]
    for name, record in special.items():
        index = _place(len(sample), rng)
        yield Pair(f"replace a row by {name}", sample, sample.replaced(index, record))
        yield Pair(
            f"replace the low corner by {name}", sample.replaced(index, low), sample.replaced(index, record)
        )
    ends = special["the opposite outlier"], special["a far outlier"]
    yield Pair("replace an outlier by its opposite", sample.replaced(0, ends[0]), sample.replaced(0, ends[1]))
    yield Pair("replace the only row", *ends)
    yield from _relabelled(sample, np.array([rng.integers(len(sample))]), rng)


def _attributes(sample: Sample, _: Records, rng: Generator) -> Iterator[Pair]:
    yield from _one_attribute(sample, np.array([rng.integers(len(sample))]), rng)


def _one_attribute(sample: Sample, at: npt.NDArray[np.int64], rng: Generator) -> Iterator[Pair]:
    """One column of some rows from end to end."""
    for j, column in enumerate(sample.schema.columns):
        for name, picks in _MOVES.items():
            sides = [sample.X.copy(), sample.X.copy()]
            for side, pick in zip(sides, picks, strict=True):
                side[at, j] = pick(column, rng)
            first, second = (replace(sample, X=side) for side in sides)
            yield Pair(f"move {column.name} from {name}", first, second)
    yield from _relabelled(sample, at, rng)


def _relabelled(sample: Sample, at: npt.NDArray[np.int64], rng: Generator) -> Iterator[Pair]:
    if sample.y is None or sample.schema.label is None:
        return
    sides = [sample.y.copy(), sample.y.copy()]
    for side, pick in zip(sides, (low, high), strict=True):
        side[at] = pick(sample.schema.label, rng)
    first, second = (replace(sample, y=side) for side in sides)
    yield Pair("change the label", first, second)


def _persons_added(sample: Sample, special: Records, rng: Generator) -> Iterator[Pair]:
    assert sample.person is not None
    for place, person in {"first": sample.person[0], "random": rng.choice(sample.person)}.items():
        yield Pair(
            f"remove the {place} person", sample, sample.without(np.flatnonzero(sample.person == person))
        )
    for name, rows in _people(sample, special):
        yield Pair(f"add a person: {name}", sample, sample.with_rows(rows, at=0))


def _persons_replaced(sample: Sample, special: Records, rng: Generator) -> Iterator[Pair]:
    assert sample.person is not None
    rest = sample.without(np.flatnonzero(sample.person == rng.choice(sample.person)))
    people = list(_people(sample, special))
    for shift in (1, 3):  # one row by several of one kind; as many of another kind
        for (name, rows), (other, others) in zip(people, people[shift:] + people[:shift], strict=True):
            sides = rest.with_rows(rows, at=0), rest.with_rows(others, at=len(rest))
            yield Pair(f"replace a person: {name} by {other}", *sides, reordered=True)
    yield from _relabelled(sample, np.flatnonzero(sample.person == sample.person[0]), rng)


def _person_attributes(sample: Sample, _: Records, rng: Generator) -> Iterator[Pair]:
    assert sample.person is not None
    yield from _one_attribute(sample, np.flatnonzero(sample.person == rng.choice(sample.person)), rng)


def _people(sample: Sample, special: Records) -> Iterator[tuple[str, Sample]]:
    """A new person with one row, as many as allowed, and three times as many."""
    assert sample.person is not None
    assert sample.schema.max_rows is not None
    most = sample.schema.max_rows
    new = _new_person(sample.person)
    for name, record in special.items():
        for times in sorted({1, most, 3 * most}):
            rows = record.take(np.zeros(times, dtype=np.int64))
            yield f"{times} times {name}", _of_person(rows, new)
    if most > 1:
        yield f"{most} rows across the box", _of_person(across(sample, most), new)


def _of_person(rows: Sample, person: Any) -> Sample:
    assert rows.person is not None
    return replace(rows, person=np.full(len(rows), person, dtype=rows.person.dtype))


def _new_person(people: AnyArray) -> Any:
    if people.dtype.kind in "iuf":
        return people.max() + 1
    return max(map(str, people)) + "+"


def _bounded(sample: Sample) -> Sample:
    """At most ``max_rows`` rows of each person, the first ones, so that nothing is dropped at random."""
    assert sample.person is not None
    assert sample.schema.max_rows is not None
    seen: dict[Any, int] = {}
    kept = []
    for index, person in enumerate(sample.person):
        seen[person] = seen.get(person, 0) + 1
        if seen[person] <= sample.schema.max_rows:
            kept.append(index)
    return sample.take(kept)


_MOVES = {"end to end": (low, high), "outlier to outlier": (below, above)}
_ROWS = {Relation.ADD_REMOVE: _added, Relation.REPLACE_ONE: _replaced, Relation.ATTRIBUTE: _attributes}
_PERSONS = {
    Relation.ADD_REMOVE: _persons_added,
    Relation.REPLACE_ONE: _persons_replaced,
    Relation.ATTRIBUTE: _person_attributes,
}

__all__ = ["Pair", "across_batches", "crowd", "neighbours"]
