"""Rows are recognised in whatever form they come, and tables and their secret parts by their rows."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada import CellStatistics, Ledger, NearestCells, OwnerKey, PureDP, Unit
from privada.exceptions import InputError
from privada.parties.one_process.process_ledger import ProcessLedger
from privada.parties.one_process.recognition import (
    MOST_LABELS,
    Division,
    Register,
    RowHasher,
    digest_rows,
    key_of,
    possible_histories,
)

ROWS = np.random.default_rng(0).normal(size=(40, 3)) * [1, 100, 1e-3]


@pytest.fixture
def hasher():
    return RowHasher()


def hash_rows(hasher, rows, **more):
    """The distinct fingerprints of rows, sorted; rows whose columns have names may have two each."""
    return np.unique(np.concatenate(hasher.hash_each_row(rows, **more)))


def forms():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    yield "a copy", ROWS.copy()
    yield "another order", ROWS[np.random.default_rng(1).permutation(40)]
    yield "rows twice", np.vstack([ROWS, ROWS[:5]])
    yield "columns contiguous", np.asfortranarray(ROWS)
    yield "single precision", ROWS.astype(np.float32)
    yield "a list", ROWS.tolist()
    yield "objects", ROWS.astype(object)
    yield "texts of numbers", ROWS.astype(str)
    yield "pandas", pandas.DataFrame(ROWS, columns=list("abc"))
    yield "polars", polars.DataFrame(ROWS, schema=["a", "b", "c"])


def test_the_same_rows_in_another_form_are_the_same(hasher):
    for form, rows in forms():
        assert np.array_equal(hash_rows(hasher, rows), hash_rows(hasher, ROWS)), form


def test_no_row_decides_for_another_what_its_fingerprint_is():
    """Not even one whose text makes a column of numbers a column of words: searches hold rows out by it."""
    rows = np.array([["1", 2.0], ["2", None], ["3", 4.0], ["many", 5.0]], dtype=object)
    alone, beside = (digest_rows(some, key=b"public") for some in (rows[:3], rows))
    assert np.array_equal(alone, beside[:3])
    assert len(set(beside.tolist())) == 4


BIG = 2**53 + 1
VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(2**53, 2**63 - 1),
    st.floats(width=64),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.sampled_from(["1", "0.5", "True", "nan", "many", str(BIG)]),
)
TABLES = st.integers(1, 3).flatmap(lambda d: st.lists(st.tuples(*[VALUES] * d), min_size=2, max_size=6))
HALF_WAY = st.integers(0, 1000).map(lambda steps: 2**53 + 2**29 + 1 + 2**31 * steps)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1) | HALF_WAY, min_size=2, max_size=6)


def digests(rows):
    return digest_rows(rows, key=b"public")


@given(TABLES)
def test_one_row_more_changes_the_fingerprint_of_no_other(rows):
    """In a list, an array of objects, and a frame, whatever type the last row makes of a column."""
    pandas = pytest.importorskip("pandas")
    rows = [list(row) for row in rows]
    expected = digests(rows)
    assert np.array_equal(digests(rows[:-1]), expected[:-1])
    assert np.array_equal(digests(np.array(rows, dtype=object)), expected)
    frames = [pandas.DataFrame(some, dtype=object).convert_dtypes() for some in (rows, rows[:-1])]
    assert np.array_equal(digests(frames[0])[:-1], digests(frames[1]))


@given(NUMBERS)
def test_whole_numbers_are_the_same_beside_a_fraction(values):
    """NumPy makes doubles of all of them then, and rounds those above 2^53."""
    polars = pytest.importorskip("polars")
    whole = np.array(values, dtype=np.int64)[:, None]
    beside = np.vstack([whole, [[0.5]]])
    assert beside.dtype == np.float64
    expected = digests(beside)[:-1]
    for form in (whole, whole.astype(object), whole.tolist(), polars.DataFrame(whole)):
        assert np.array_equal(digests(form), expected)
    if (whole >= 0).all():
        assert np.array_equal(digests(whole.astype(np.uint64)), expected)


def test_rows_of_large_whole_numbers_are_recognised_beside_a_fraction(hasher):
    # Rounded to doubles they are half-way between two numbers of single precision, as they are they are not.
    whole = 2**53 + 2**29 + 1 + 2**31 * np.arange(2000)[:, None]
    beside = np.vstack([whole, [[0.5]]])
    assert np.isin(hash_rows(hasher, whole), hash_rows(hasher, beside)).all()


def test_dates_are_the_same_in_every_unit_and_beside_a_word():
    pandas = pytest.importorskip("pandas")
    dates = pandas.date_range("2020-01-01", periods=3)
    frame = pandas.DataFrame({"day": dates})
    mixed = pandas.DataFrame({"day": [*dates, "never"]}, dtype=object)
    assert np.array_equal(digests(frame), digests(mixed)[:-1])
    assert np.array_equal(digests(frame), digests(frame.to_numpy().astype("datetime64[s]")))
    gaps = pandas.DataFrame({"day": [*dates, pandas.NaT]})
    assert np.array_equal(digests(gaps)[:-1], digests(frame))


def test_numbers_are_the_same_in_every_type(hasher):
    whole = np.arange(12).reshape(6, 2)
    expected = hash_rows(hasher, whole)
    for kind in (np.int8, np.uint16, np.float32, np.float64, object):
        assert np.array_equal(hash_rows(hasher, whole.astype(kind)), expected)


def test_zeros_and_missing_values_are_one_each(hasher):
    nan = np.frombuffer(np.uint64(0xFFF8000000000001).tobytes(), dtype=np.float64)[0]
    assert np.array_equal(hash_rows(hasher, [[-0.0, np.nan]]), hash_rows(hasher, [[0.0, nan]]))
    words = np.array([["a", None], ["b", 1.5]], dtype=object)
    other = np.array([["a", float("nan")], ["b", 1.5]], dtype=object)
    assert np.array_equal(hash_rows(hasher, words), hash_rows(hasher, other))


def test_what_differs_is_told_apart(hasher):
    assert len(hash_rows(hasher, ROWS)) == 40
    assert not np.isin(hash_rows(hasher, ROWS + 1e-3), hash_rows(hasher, ROWS)).any()
    assert not np.isin(hash_rows(hasher, ROWS[:, :2]), hash_rows(hasher, ROWS)).any()
    words = np.array([["a", 1], ["b", 1]], dtype=object)
    assert len(hash_rows(hasher, words)) == 2
    assert not np.isin(hash_rows(hasher, ROWS, kind="person"), hash_rows(hasher, ROWS)).any()
    assert len(hash_rows(hasher, np.empty((0, 3)))) == 0


def test_another_process_makes_others(hasher):
    assert not np.isin(hash_rows(RowHasher(), ROWS), hash_rows(hasher, ROWS)).any()


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy])
def test_the_key_stays(hasher, attempt):
    with pytest.raises(TypeError, match="keyed for one process"):
        attempt(hasher)
    assert repr(hasher) == "<RowHasher>"
    assert not hasattr(hasher, "__dict__")


EPSILON = PureDP(epsilon=0.25, relation="add/remove")
PERSONS = PureDP(epsilon=0.25, relation="add/remove", unit=Unit(name="person", max_rows=4))
TABLE_ROWS = np.random.default_rng(0).uniform(size=(40, 2))
LABELS = np.arange(40) % 4


@pytest.fixture
def book():
    return ProcessLedger()


def use(book, rows, guarantee=EPSILON, *, charged=True, **more):
    """One use of rows, charged once and settled."""
    question = CellStatistics(tables=(NearestCells(centers=np.eye(2)),), guarantee=guarantee)
    ledger = Ledger.open(":memory:", OwnerKey.generate())
    ledger.open_budget("fit", guarantee)
    entered = book.enter(rows, guarantee=guarantee, ledger=ledger, dataset="fit", **more)
    if charged:
        ledger.charge("fit", question.price, question=question.digest)
    entered.settle()
    ledger.close()
    return entered


def fits(*uses):
    """How many fits a row had at most, as each use states it."""
    return [each.spent().epsilon / 0.25 for each in uses]


def check_unknown(*uses):
    for each in uses:
        with pytest.raises(InputError, match="divide them by PrivateKFold, or name each table"):
            each.spent()


def test_the_same_rows_in_any_order_are_one_table(book):
    first, second = use(book, TABLE_ROWS), use(book, TABLE_ROWS[::-1])
    named = use(book, TABLE_ROWS[:, ::-1], columns=["v", "u"])
    assert fits(first, second, named) == [3, 3, 3]
    assert fits(use(book, TABLE_ROWS, columns=["u", "v"]), first) == [4, 4]


@pytest.mark.parametrize(
    "other",
    [
        TABLE_ROWS[:20],
        TABLE_ROWS[:-1],
        np.vstack([TABLE_ROWS, TABLE_ROWS[:1]]),
        1 - TABLE_ROWS,
        TABLE_ROWS[:, :1],
        np.vstack([TABLE_ROWS, TABLE_ROWS]),
    ],
    ids=["half", "less", "a row twice", "other rows", "a column", "all twice"],
)
def test_other_rows_without_a_name_are_unknown(book, other):
    check_unknown(use(book, TABLE_ROWS), use(book, other))


def test_halves_that_share_no_row_are_unknown_and_fits_that_cost_nothing_are_not(book):
    first = use(book, TABLE_ROWS[::2])
    use(book, TABLE_ROWS[1::2], charged=False)
    assert fits(first) == [1]
    check_unknown(first, use(book, TABLE_ROWS[1::2]))


def test_names_tell_tables_apart_and_rows_are_counted_in_each(book):
    first, second = use(book, TABLE_ROWS[:30], table="a"), use(book, TABLE_ROWS[20:], table="b")
    assert fits(first, second) == [2, 2]
    third = use(book, 1 - TABLE_ROWS)
    assert fits(first, second, third) == [2, 2, 1]
    check_unknown(first, use(book, TABLE_ROWS[:20], table="a"))  # as the folds of clones have
    assert fits(second, third) == [2, 1]
    check_unknown(second, use(book, TABLE_ROWS[25:]))


def test_parties_of_one_fit_are_tables_of_their_own(book):
    for _ in range(2):
        parties = [use(book, TABLE_ROWS), use(book, 1 - TABLE_ROWS)]
        book.join_fit(parties)
    assert fits(*parties) == [2, 2]
    book.join_fit([parties[0], use(book, TABLE_ROWS / 2)])
    check_unknown(parties[1])


def test_parts_of_a_division_lose_what_the_worst_part_lost(book):
    book.divide(TABLE_ROWS, LABELS, count=4)
    training = [use(book, TABLE_ROWS[label != LABELS]) for label in range(4)]
    assert fits(*training) == [3] * 4
    whole = use(book, TABLE_ROWS)
    assert fits(whole, *training) == [4] * 5
    test = use(
        book, TABLE_ROWS[LABELS == 1]
    )  # its rows lost no more, but nobody may know which ones they are
    assert fits(test, whole) == [5, 5]
    assert fits(use(book, TABLE_ROWS[LABELS == 0]), test, use(book, TABLE_ROWS[LABELS == 2])) == [5, 5, 5]
    assert len(whole.rows) == len(test.rows) == 40


def test_what_a_part_states_does_not_tell_which_rows_it_has(book):
    book.divide(TABLE_ROWS, LABELS % 2, count=2)
    once, twice = TABLE_ROWS[LABELS % 2 == 0], TABLE_ROWS[LABELS % 2 == 1]
    uses = [use(book, once), use(book, twice), use(book, twice)]
    assert fits(*uses) == [2, 2, 2]
    assert [each.uses for each in uses] == [1, 1, 2]
    probes = [use(book, TABLE_ROWS[at : at + 1], table=f"row {at}") for at in range(40)]
    check_unknown(*probes)  # of one row without a name, and of a table that has one
    named = ProcessLedger()
    named.divide(TABLE_ROWS, LABELS % 2, count=2)
    use(named, once, table="all")
    assert fits(*[use(named, TABLE_ROWS[at : at + 1], table=f"row {at}") for at in range(40)]) == [2] * 40


def test_several_divisions_and_parts_of_parts_add_up(book):
    other = np.arange(40) // 10
    book.divide(TABLE_ROWS, LABELS, count=4)
    book.divide(TABLE_ROWS, other, count=4)
    first = [use(book, TABLE_ROWS[label != LABELS]) for label in range(4)]
    second = [use(book, TABLE_ROWS[other != label]) for label in range(3)]
    assert fits(*first, *second) == [6] * 7
    train, inner = TABLE_ROWS[LABELS != 0], np.arange(30) % 3
    book.divide(train, inner, count=3)
    deeper = [use(book, train[inner != label]) for label in range(3)]
    assert fits(*deeper, *first) == [8] * 7  # two of three for those that are not in fold 0


def test_a_part_that_may_be_another_counts_as_the_whole(book):
    book.divide(TABLE_ROWS, np.zeros(40, dtype=int), count=2)  # nobody has label 1
    uses = [use(book, TABLE_ROWS), use(book, TABLE_ROWS[:0]), use(book, TABLE_ROWS[:0])]
    assert fits(*uses) == [3, 3, 3]  # those of label 1, if there were any, are in the whole and twice alone
    assert uses[0].labels == ()  # may be all, or all others than label 1
    book.divide(1 - TABLE_ROWS, np.zeros(40, dtype=int), count=2)
    empty = use(book, TABLE_ROWS[:0])  # of the one table or of the other
    assert len(empty.tables) == 2
    assert fits(empty) == [4]


def test_parts_of_fixed_sizes_mean_nothing_under_add_remove(book):
    """One row less in the file, and another row is in another part."""
    book.divide(TABLE_ROWS, LABELS % 2, count=2, has_fixed_sizes=True)
    replaced = PureDP(epsilon=0.25, relation="replace-one")
    parts = [use(book, TABLE_ROWS[at == LABELS % 2], replaced) for at in range(2)]
    assert fits(*parts) == [1, 1]
    check_unknown(use(book, TABLE_ROWS[LABELS % 2 == 0]))


def test_persons_are_divided_whole(book):
    people = np.arange(40) // 4
    labels = (people % 2).astype(np.int64)
    book.divide(TABLE_ROWS, labels, count=2, person=people)
    parts = [use(book, TABLE_ROWS[labels == at], PERSONS, person=people[labels == at]) for at in range(2)]
    assert fits(*parts) == [1, 1]
    assert len(parts[0].rows) == 10
    check_unknown(parts[0], use(book, TABLE_ROWS + 1, PERSONS, person=people))
    rows_only = ProcessLedger()
    rows_only.divide(TABLE_ROWS, labels, count=2)
    check_unknown(
        *[use(rows_only, TABLE_ROWS[labels == at], PERSONS, person=people[labels == at]) for at in range(2)]
    )


class Step:
    def __init__(self, *labels):
        self.labels = labels


def test_possible_histories_are_those_of_all_labels():
    divisions = Division(2), Division(3)
    history = [Step(), Step((divisions[0], frozenset({0}))), Step((divisions[1], frozenset({0, 2})))]
    histories = list(possible_histories(history))
    expected = {
        tuple(s for s in history if all({divisions[0]: a, divisions[1]: b}[d] in f for d, f in s.labels))
        for a, b in itertools.product(range(2), range(3))
    }
    assert set(histories) == expected
    assert len(histories) == 4


def test_more_labels_than_can_be_looked_at_count_as_all():
    divisions = [Division(4) for _ in range(6)]
    history = [Step((division, frozenset({0}))) for division in divisions]
    histories = list(possible_histories(history))
    assert len(histories) <= MOST_LABELS
    assert max(map(len, histories)) == 6
    assert min(map(len, histories)) == 2  # beyond four divisions of four labels, all have the use


def test_a_register_tells_apart_only_what_it_was_told():
    register = Register()
    (first,), (second,) = (register.find([name], [np.zeros(0, np.uint64)]) for name in (b"1", b"2"))
    tables = [first.table], [second.table]
    assert not register.are_apart(*tables)
    register.tell_apart([first.table, second.table])
    assert register.are_apart(*tables)
    rows = np.arange(3, dtype=np.uint64)
    assert key_of(rows) == key_of(rows[::-1]) != key_of(np.append(rows, rows[:1]))
    assert key_of(rows, rows) != key_of(rows, rows[::-1])
