"""Neighbouring data sets to audit with: random ones, and the ones that break careless proofs.

Rows that are duplicated, in the corners of the public box, far outside it, on a
public centre or edge, half-way between two centres, first or last (so that
every other row's place shifts), alone, in a crowd of such rows, and across a
batch's end; persons with
one row, with as many as allowed, alike or across the box, and with three times as many.

What the *other* rows are matters as much as the changed one. A sensitivity can be wrong only in a crowd (a
tie that one row's place decides moves many), only once so many rows are equal (what counts from a threshold
on), only in a file with alternating rows (what is aligned by place shifts), only where rows are alone (an
empty cell), only in a sorted file (a changed record moves to another place), and only where the others are
far away (a secret sample does not hide a row that is easy to recognise). Neighbours are sets of rows: a
changed record may be anywhere in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import AnyArray
from privada.audit.rows import Sample, above, across, below, high, low, middle, near_low, records
from privada.exceptions import InputError
from privada.parties.rows import BATCH
from privada.parties.schema import Column
from privada.privacy.relation import Relation

Generator = np.random.Generator
Records = dict[str, Sample]
Pick = Callable[[Column, Generator], Any]
SMALL_SAMPLE, MOST_GIVEN = 8, 100
FAR_APART = "far from all others"
MOST_COLUMNS = 3
MOST_EQUAL = 40  # rows of a growing crowd


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring samples, named by what is special about them.

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
    """Yield random and adversarial neighbours of a sample under a relation; the unit is the schema's.

    Parameters
    ----------
    sample : Sample
    relation : Relation
    rng : numpy Generator
        Public randomness.
    landmarks : array, default=None
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
    change = Relation.parse(relation)
    special = dict(records(sample, rng, landmarks))
    if sample.person is not None:
        assert sample.schema.max_rows is not None
        # At most so many rows of each person, the first ones, so that nothing is dropped at random
        counts: Counter[Any] = Counter()
        places = []
        for index, person in enumerate(sample.person):
            counts[person] += 1
            if counts[person] <= sample.schema.max_rows:
                places.append(index)
        sample = sample.take(places)
    if change is Relation.ATTRIBUTE:
        yield from _change_attributes(sample, rng)
    elif sample.person is None:
        yield from _change_rows(sample, change, special, rng)
    else:
        yield from _change_persons(sample, change, special, rng)


def across_batches(sample: Sample, *, relation: Relation | str) -> Pair:
    """Make a pair so large that a change of the first row moves another one into the next batch.

    Rows are repeated; the unit must be a row.
    """
    if sample.schema.person_id is not None:
        raise InputError("Expected a schema whose unit is a row.")
    large = sample.take(np.arange(BATCH + 1) % len(sample))
    if Relation.parse(relation) is Relation.ADD_REMOVE:
        return Pair("remove the first of more than a batch", large, large.without([0]))
    return Pair("replace the first of more than a batch", large, large.replaced(0, large.take([BATCH // 2])))


def _change_rows(sample: Sample, change: Relation, special: Records, rng: Generator) -> Iterator[Pair]:
    corner = special["the high corner"]
    if change is Relation.ADD_REMOVE:
        places = {"first": 0, "last": len(sample) - 1, "random": int(rng.integers(len(sample)))}
        for place, index in places.items():
            yield Pair(f"remove the {place} row", sample, sample.without([index]))
        for name, record in special.items():
            at = _choose_place(len(sample) + 1, rng)
            yield Pair(f"add {name}", sample, sample.with_rows(record, at=at))
        yield Pair("add a first row", sample, sample.with_rows(corner, at=0))
        yield Pair("add the only row", corner.without([0]), corner)
        many = crowd(special)
        yield Pair("add a first row to a crowd", many, many.with_rows(corner, at=0))
        yield Pair("remove the first row of a crowd", many, many.without([0]))
        return
    for name, record in special.items():
        index = _choose_place(len(sample), rng)
        other = sample.replaced(index, record)
        yield Pair(f"replace a row by {name}", sample, other)
        from_low = sample.replaced(index, special["the low corner"])
        yield Pair(f"replace the low corner by {name}", from_low, other)
    ends = special["the opposite outlier"], special["a far outlier"]
    first, second = (sample.replaced(0, end) for end in ends)
    yield Pair("replace an outlier by its opposite", first, second)
    yield Pair("replace the only row", *ends)
    yield from _change_labels(sample, np.array([rng.integers(len(sample))]), rng)


def crowd(special: Records) -> Sample:
    """Make every special row three times: what one row's place decides, such as a tie, moves many."""
    first, *others = special.values()
    for other in others:
        first = first.with_rows(other, at=len(first))
    return first.take(np.repeat(np.arange(len(first)), 3))


def _choose_place(places: int, rng: Generator) -> int:
    """Choose the first, the last or any place."""
    return (0, places - 1, int(rng.integers(places)))[rng.integers(3)]


def _change_attributes(sample: Sample, rng: Generator) -> Iterator[Pair]:
    """Move one column of a row, or of all rows of a person, from end to end."""
    if sample.person is None:
        at = np.array([rng.integers(len(sample))])
    else:
        at = np.flatnonzero(sample.person == rng.choice(sample.person))
    moves = {"end to end": (low, high), "outlier to outlier": (below, above)}
    for j, column in enumerate(sample.schema.columns):
        for name, picks in moves.items():
            first, second = _move_column(sample, at, j, picks, rng)
            yield Pair(f"move {column.name} from {name}", first, second)
    yield from _change_labels(sample, at, rng)


def _move_column(
    sample: Sample, at: npt.NDArray[np.int64], j: int, picks: Sequence[Pick], rng: Generator
) -> Iterator[Sample]:
    """Make a sample for each pick, in which it chooses the jth column of some rows."""
    for pick in picks:
        X = sample.X.copy()
        X[at, j] = pick(sample.schema.columns[j], rng)
        yield replace(sample, X=X)


def _change_labels(
    sample: Sample, at: npt.NDArray[np.int64], rng: Generator, *, name: str = "change the label"
) -> Iterator[Pair]:
    if sample.y is None or sample.schema.label is None:
        return
    sides = [sample.y.copy(), sample.y.copy()]
    for side, pick in zip(sides, (low, high), strict=True):
        side[at] = pick(sample.schema.label, rng)
    first, second = (replace(sample, y=side) for side in sides)
    yield Pair(name, first, second)


def _change_persons(sample: Sample, change: Relation, special: Records, rng: Generator) -> Iterator[Pair]:
    assert sample.person is not None
    if change is Relation.ADD_REMOVE:
        for place, person in {"first": sample.person[0], "random": rng.choice(sample.person)}.items():
            fewer = sample.without(np.flatnonzero(sample.person == person))
            yield Pair(f"remove the {place} person", sample, fewer)
        for name, rows in _make_persons(sample, special):
            yield Pair(f"add a person: {name}", sample, sample.with_rows(rows, at=0))
        return
    rest = sample.without(np.flatnonzero(sample.person == rng.choice(sample.person)))
    people = list(_make_persons(sample, special))
    for shift in (1, 3):  # one row by several of one kind; as many of another kind
        for (name, rows), (other, others) in zip(people, people[shift:] + people[:shift], strict=True):
            sides = rest.with_rows(rows, at=0), rest.with_rows(others, at=len(rest))
            yield Pair(f"replace a person: {name} by {other}", *sides, reordered=True)
    yield from _change_labels(sample, np.flatnonzero(sample.person == sample.person[0]), rng)


def _make_persons(sample: Sample, special: Records) -> Iterator[tuple[str, Sample]]:
    """Make a new person with one row, as many as allowed, and three times as many."""
    assert sample.person is not None
    assert sample.schema.max_rows is not None
    most, people = sample.schema.max_rows, sample.person
    new: Any = people.max() + 1 if people.dtype.kind in "iuf" else max(map(str, people)) + "+"

    def give(rows: Sample) -> Sample:
        return replace(rows, person=np.full(len(rows), new, dtype=people.dtype))

    for name, record in special.items():
        for times in sorted({1, most, 3 * most}):
            yield f"{times} times {name}", give(record.take(np.zeros(times, dtype=np.int64)))
    if most > 1:
        yield f"{most} rows across the box", give(across(sample, most))


@dataclass(frozen=True, eq=False)
class Chain:
    """Samples of which each is a neighbour of the next, named by what is special about them."""

    name: str
    samples: tuple[Sample, ...]


def arranged_neighbours(
    sample: Sample, *, relation: Relation | str, rng: Generator, landmarks: AnyArray | None = None
) -> Iterator[Pair]:
    """Yield neighbours in crowds, alternating, sorted, alone, and far from all others.

    The unit is the schema's. Under replace-one and at attribute level a schema may declare the number of
    rows; an arrangement is then repeated up to that length.

    Parameters
    ----------
    sample, relation, rng, landmarks
        As for `neighbours`.
    """
    relation = Relation.parse(relation)
    special = dict(records(sample, rng, landmarks))
    if sample.person is not None:
        yield from _arrange_persons(sample, relation, rng)
        return
    low_row, high_row = special["the low corner"], special["the high corner"]
    both, center = low_row.with_rows(high_row, at=1), middle(sample)
    turns = np.arange(2 * SMALL_SAMPLE) % 2
    length = sample.schema.size if relation is not Relation.ADD_REMOVE else None
    for name, base in {
        "in a crowd": crowd(special),
        "alternating": both.take(turns),
        FAR_APART: both.take([0] + [1] * (SMALL_SAMPLE - 1)),
        "as given": sample.take(np.arange(min(len(sample), MOST_GIVEN))),
        "alternating with the middle": center.with_rows(high_row, at=1).take(turns),
        "sorted": _sort_rows(sample.take(np.arange(min(len(sample), 2 * SMALL_SAMPLE)))),
        "all alike": low_row.take([0] * SMALL_SAMPLE),
        "all near the low corner": near_low(sample).take([0] * SMALL_SAMPLE),
        "alone": low_row,
    }.items():
        longer = base if length is None else base.take(np.arange(length) % len(base))
        for pair in _change_arranged(longer, relation, special, rng):
            yield replace(pair, name=f"{pair.name}, {name}")
    # A changed record moves to another place of a sorted file
    whole_file = sample.take(
        np.arange(min(len(sample), MOST_GIVEN) if length is None else length) % len(sample)
    )
    rest, before = whole_file.without([0]), _sort_rows(whole_file)
    backwards = np.arange(len(whole_file))[::-1]
    if relation is Relation.ADD_REMOVE:
        after = _sort_rows(rest).take(backwards[1:])
        yield Pair("remove a row and reverse a sorted file", before, after, reordered=True)
    elif relation is Relation.REPLACE_ONE:
        after = _sort_rows(rest.with_rows(high_row, at=0))
        yield Pair("replace a row of a sorted file", before, after, reordered=True)
        yield Pair("replace a row and reverse a sorted file", before, after.take(backwards), reordered=True)


def growing_crowds(sample: Sample, *, relation: Relation | str, rng: Generator) -> Iterator[Chain]:
    """Yield chains along which rows become equal one by one, from none to a few dozen.

    Where rows are added, equal rows join some of the sample's; where they are replaced, they take the places
    of others; at attribute level, they differ from the others in one column. If the unit is a person,
    everybody has one row.

    Parameters
    ----------
    sample, relation, rng
        As for `neighbours`.
    """
    relation = Relation.parse(relation)
    special = dict(records(sample, rng, None))
    low_row, high_row = special["the low corner"], special["the high corner"]
    some = sample.take(np.arange(min(len(sample), SMALL_SAMPLE)))
    if relation is Relation.ADD_REMOVE:
        for name in ("the low corner", "the high corner", "a random row"):
            crowded = some.with_rows(special[name].take([0] * MOST_EQUAL), at=len(some))
            lengths = range(len(some), len(crowded) + 1)
            yield _make_chain(f"add {name} again and again", [crowded.take(range(n)) for n in lengths])
        return
    size = sample.schema.size or MOST_EQUAL + SMALL_SAMPLE
    if relation is Relation.REPLACE_ONE:
        starts = {
            "the low corner": low_row.take([0] * size),
            "the rows as given": sample.take(np.arange(size) % len(sample)),
        }
        for name, record in {"the high corner": high_row, "a random row": special["a random row"]}.items():
            for others, start in starts.items():
                yield _replace_one_by_one(f"replace {others} by {name}, one by one", start, record)
        return
    start = low_row.take([0] * size)
    for j, column in enumerate(sample.schema.columns[:MOST_COLUMNS]):
        record = replace(low_row, X=low_row.X.copy())
        record.X[0, j] = high_row.X[0, j]
        yield _replace_one_by_one(f"move {column.name} of equal rows, one by one", start, record)
    if low_row.y is not None:
        record = replace(low_row, y=high_row.y)
        yield _replace_one_by_one("change the labels of equal rows, one by one", start, record)


def _replace_one_by_one(name: str, start: Sample, record: Sample) -> Chain:
    """Turn one row after the other into the record."""
    both = start.with_rows(record, at=len(start))
    steps = range(min(len(start), MOST_EQUAL) + 1)
    return _make_chain(
        name, [both.take([len(start)] * step + list(range(step, len(start)))) for step in steps]
    )


def _make_chain(name: str, samples: list[Sample]) -> Chain:
    return Chain(name, tuple(side if side.person is None else _own_persons(side) for side in samples))


def _sort_rows(sample: Sample) -> Sample:
    """Sort by the label, then by the first column, as in a tidy file."""
    keys = []
    for values in [sample.X[:, 0]] if sample.y is None else [sample.X[:, 0], sample.y]:
        # Numbers, or the place of each text among them
        is_number = values.dtype.kind in "fiub"
        keys.append(values if is_number else np.unique(values.astype(str), return_inverse=True)[1])
    return sample.take(np.lexsort(keys))


def _change_arranged(base: Sample, relation: Relation, special: Records, rng: Generator) -> Iterator[Pair]:
    rest, corners = base.without([0]), ("the low corner", "the high corner")
    if relation is Relation.ADD_REMOVE:
        yield Pair("remove the first row", base, rest)
        yield Pair("remove the last row", base, base.without([len(base) - 1]))
        for name in (*corners, "a random row"):
            yield Pair(f"add {name} first", base, base.with_rows(special[name], at=0))
        last = base.with_rows(special["the high corner"], at=len(base))
        yield Pair("add the high corner last", base, last)
    elif relation is Relation.REPLACE_ONE:
        for name in (*corners, "a far outlier"):
            yield Pair(f"replace the first row by {name}", base, base.replaced(0, special[name]))
        index = int(rng.integers(len(base)))
        yield Pair("replace a row by a random one", base, base.replaced(index, special["a random row"]))
        for name in corners:
            moved = rest.with_rows(special[name], at=len(rest))
            yield Pair(f"replace the first row by {name} in the last place", base, moved, reordered=True)
    else:
        at = np.array([0])
        for j, column in enumerate(base.schema.columns[:MOST_COLUMNS]):
            first, second = _move_column(base, at, j, (low, high), rng)
            name = f"move {column.name} of the first row"
            yield Pair(name, first, second)
            turned = second.take(np.r_[1 : len(second), 0])
            yield Pair(f"{name} to the last place", first, turned, reordered=True)
        yield from _change_labels(base, at, rng, name="change the first label")


def _arrange_persons(sample: Sample, relation: Relation, rng: Generator) -> Iterator[Pair]:
    """Yield the same pairs with every row a person of its own, in alternating and sorted files."""
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
            title = f"replace the first person by {name} in the last place, persons with one row"
            yield Pair(title, people, moved, reordered=True)


def _own_persons(sample: Sample) -> Sample:
    """Make every row a person of its own."""
    assert sample.person is not None
    kind: Any = sample.person.dtype if sample.person.dtype.kind in "iuf" else object
    people = [number if kind is not object else f"person {number:06d}" for number in range(len(sample))]
    return replace(sample, person=np.array(people, dtype=kind))
