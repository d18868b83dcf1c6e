"""Whole data sets that break careless proofs: what the *other* rows are matters as much as the changed one.

A sensitivity can be wrong only in a crowd (a tie that one row's place decides moves many),
only once so many rows are equal (what counts from a threshold on), only in a file with
alternating rows (what is aligned by place shifts), only where rows are alone (an empty cell),
only in a sorted file (a changed record moves to another place), and only where the others are
far away (a secret sample does not hide a row that is easy to recognise).
Neighbours are sets of rows: a changed record may be anywhere in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privada._arrays import AnyArray
from privada.audit.rows.pairs import Pair, crowd, neighbours
from privada.audit.rows.records import high, low, middle, near_low, records
from privada.audit.rows.sample import Sample
from privada.privacy.relation import Relation

Generator = np.random.Generator
SMALL_SAMPLE, MOST_GIVEN = 8, 100
FAR_APART = "far from all others"
MOST_COLUMNS = 3
MOST_EQUAL = 40  # rows of a growing crowd


@dataclass(frozen=True, eq=False)
class Chain:
    """Samples of which each is a neighbour of the next, and what is special about them."""

    name: str
    samples: tuple[Sample, ...]


def arranged_neighbours(
    sample: Sample, *, relation: Relation | str, rng: Generator, landmarks: AnyArray | None = None
) -> Iterator[Pair]:
    """Neighbours in crowds, alternating, sorted, alone, and far from all others; the unit is the schema's.

    Under replace-one and at attribute level a schema may declare the number of rows, which is then
    kept: an arrangement is repeated up to that length.

    Parameters
    ----------
    sample, relation, rng, landmarks
        As for `neighbours`.
    """
    asked = Relation.parse(relation)
    special = dict(records(sample, rng, landmarks))
    if sample.schema.person_id is not None:
        yield from _of_single_rows(sample, asked, rng)
        return
    length = sample.schema.size if asked is not Relation.ADD_REMOVE else None
    for name, base in _arrangements(sample, special).items():
        longer = base if length is None else base.take(np.arange(length) % len(base))
        for pair in _PAIRS[asked](longer, special, rng):
            yield replace(pair, name=f"{pair.name}, {name}")
    given = sample.take(np.arange(min(len(sample), MOST_GIVEN) if length is None else length) % len(sample))
    rest = given.without([0])
    if asked is Relation.ADD_REMOVE:
        yield Pair(
            "remove a row and reverse a sorted file", _sorted(given), _reversed(_sorted(rest)), reordered=True
        )
    elif asked is Relation.REPLACE_ONE:
        other = _sorted(rest.with_rows(special["the high corner"], at=0))
        yield Pair("replace a row of a sorted file", _sorted(given), other, reordered=True)
        yield Pair(
            "replace a row and reverse a sorted file", _sorted(given), _reversed(other), reordered=True
        )


def growing_crowds(sample: Sample, *, relation: Relation | str, rng: Generator) -> Iterator[Chain]:
    """Chains along which rows become equal one by one, from none to a few dozen.

    Where rows are added, equal rows join some of the sample's; where they are replaced, they take the places
    of others; at attribute level, they differ from the others in one column. If the unit is a person,
    everybody has one row.

    Parameters
    ----------
    sample, relation, rng
        As for `neighbours`.
    """
    asked = Relation.parse(relation)
    special = dict(records(sample, rng, None))
    low_row, high_row = special["the low corner"], special["the high corner"]
    some = sample.take(np.arange(min(len(sample), SMALL_SAMPLE)))
    if asked is Relation.ADD_REMOVE:
        for name in ("the low corner", "the high corner", "a random row"):
            crowded = some.with_rows(special[name].take([0] * MOST_EQUAL), at=len(some))
            lengths = range(len(some), len(crowded) + 1)
            yield _chain(f"add {name} again and again", [crowded.take(range(n)) for n in lengths])
        return
    size = sample.schema.size or MOST_EQUAL + SMALL_SAMPLE
    if asked is Relation.REPLACE_ONE:
        given = sample.take(np.arange(size) % len(sample))
        starts = {"the low corner": low_row.take([0] * size), "the rows as given": given}
        for name, record in {"the high corner": high_row, "a random row": special["a random row"]}.items():
            for others, start in starts.items():
                yield _taking_over(f"replace {others} by {name}, one by one", start, record)
        return
    start = low_row.take([0] * size)
    for j, column in enumerate(sample.schema.columns[:MOST_COLUMNS]):
        record = replace(low_row, X=low_row.X.copy())
        record.X[0, j] = high_row.X[0, j]
        yield _taking_over(f"move {column.name} of equal rows, one by one", start, record)
    if low_row.y is not None:
        record = replace(low_row, y=high_row.y)
        yield _taking_over("change the labels of equal rows, one by one", start, record)


def _taking_over(name: str, start: Sample, record: Sample) -> Chain:
    """One row after the other becomes the record."""
    both = start.with_rows(record, at=len(start))
    steps = range(min(len(start), MOST_EQUAL) + 1)
    return _chain(name, [both.take([len(start)] * step + list(range(step, len(start)))) for step in steps])


def _chain(name: str, samples: list[Sample]) -> Chain:
    everybody = (side if side.person is None else _own_persons(side) for side in samples)
    return Chain(name, tuple(everybody))


def _arrangements(sample: Sample, special: dict[str, Sample]) -> dict[str, Sample]:
    low_row, high_row = special["the low corner"], special["the high corner"]
    both = low_row.with_rows(high_row, at=1)
    return {
        "in a crowd": crowd(special),
        "alternating": both.take(np.arange(2 * SMALL_SAMPLE) % 2),
        FAR_APART: both.take([0] + [1] * (SMALL_SAMPLE - 1)),
        "as given": sample.take(np.arange(min(len(sample), MOST_GIVEN))),
        "alternating with the middle": middle(sample)
        .with_rows(high_row, at=1)
        .take(np.arange(2 * SMALL_SAMPLE) % 2),
        "sorted": _sorted(sample.take(np.arange(min(len(sample), 2 * SMALL_SAMPLE)))),
        "all alike": low_row.take([0] * SMALL_SAMPLE),
        "all near the low corner": near_low(sample).take([0] * SMALL_SAMPLE),
        "alone": low_row,
    }


def _sorted(sample: Sample) -> Sample:
    """By the label, then by the first column: what a tidy file looks like."""
    keys = [sample.X[:, 0]] if sample.y is None else [sample.X[:, 0], sample.y]
    return sample.take(np.lexsort([_codes(key) for key in keys]))


def _reversed(sample: Sample) -> Sample:
    return sample.take(np.arange(len(sample))[::-1])


def _codes(values: AnyArray) -> AnyArray:
    """Numbers, or the place of each text among them."""
    return values if values.dtype.kind in "fiub" else np.unique(values.astype(str), return_inverse=True)[1]


def _added(base: Sample, special: dict[str, Sample], _: Generator) -> Iterator[Pair]:
    yield Pair("remove the first row", base, base.without([0]))
    yield Pair("remove the last row", base, base.without([len(base) - 1]))
    for name in ("the low corner", "the high corner", "a random row"):
        yield Pair(f"add {name} first", base, base.with_rows(special[name], at=0))
    yield Pair("add the high corner last", base, base.with_rows(special["the high corner"], at=len(base)))


def _replaced(base: Sample, special: dict[str, Sample], rng: Generator) -> Iterator[Pair]:
    for name in ("the low corner", "the high corner", "a far outlier"):
        yield Pair(f"replace the first row by {name}", base, base.replaced(0, special[name]))
    index = int(rng.integers(len(base)))
    yield Pair("replace a row by a random one", base, base.replaced(index, special["a random row"]))
    rest = base.without([0])
    for name in ("the low corner", "the high corner"):
        moved = rest.with_rows(special[name], at=len(rest))
        yield Pair(f"replace the first row by {name} in the last place", base, moved, reordered=True)


def _changed(base: Sample, _: dict[str, Sample], rng: Generator) -> Iterator[Pair]:
    for j, column in enumerate(base.schema.columns[:MOST_COLUMNS]):
        sides = [base.X.copy(), base.X.copy()]
        for side, pick in zip(sides, (low, high), strict=True):
            side[0, j] = pick(column, rng)
        first, second = (replace(base, X=side) for side in sides)
        yield Pair(f"move {column.name} of the first row", first, second)
        turned = second.take(np.r_[1 : len(second), 0])
        yield Pair(f"move {column.name} of the first row to the last place", first, turned, reordered=True)
    if base.y is not None and base.schema.label is not None:
        labels = [base.y.copy(), base.y.copy()]
        for labelled, pick in zip(labels, (low, high), strict=True):
            labelled[0] = pick(base.schema.label, rng)
        before, after = (replace(base, y=labelled) for labelled in labels)
        yield Pair("change the first label", before, after)


def _of_single_rows(sample: Sample, relation: Relation, rng: Generator) -> Iterator[Pair]:
    """The same pairs of rows, every row a person of its own, in alternating and sorted files."""
    assert sample.person is not None
    people = _own_persons(sample)
    for pair in neighbours(people, relation=relation, rng=rng):
        yield replace(pair, name=f"{pair.name}, persons with one row")
    if relation is Relation.REPLACE_ONE:
        rest, last = people.without([0]), people.take([0])
        special = dict(records(people, rng, None))
        for name in ("the low corner", "the high corner"):
            other = replace(special[name], person=last.person)
            moved = rest.with_rows(other, at=len(rest))
            named = f"replace the first person by {name} in the last place, persons with one row"
            yield Pair(named, people, moved, reordered=True)


def _own_persons(sample: Sample) -> Sample:
    assert sample.person is not None
    kinds: Any = sample.person.dtype if sample.person.dtype.kind in "iuf" else object
    return replace(sample, person=np.array([_name(at, kinds) for at in range(len(sample))], dtype=kinds))


def _name(at: int, kind: Any) -> Any:
    return at if kind is not object else f"person {at:06d}"


_PAIRS = {Relation.ADD_REMOVE: _added, Relation.REPLACE_ONE: _replaced, Relation.ATTRIBUTE: _changed}

__all__ = ["FAR_APART", "Chain", "arranged_neighbours", "growing_crowds"]
