"""What rows have lost is stated only where it is known how they were divided, and then for every division."""

import itertools

import numpy as np
import pytest

from privada import CellStatistics, Ledger, NearestCells, OwnerKey, PureDP, Unit
from privada.exceptions import InputError
from privada.parties.one_process.process_ledger import ProcessLedger
from privada.parties.one_process.recognition import (
    MOST_LABELS,
    Division,
    Register,
    key_of,
    possible_histories,
)

EPSILON = PureDP(epsilon=0.25, relation="add/remove")
PERSONS = PureDP(epsilon=0.25, relation="add/remove", unit=Unit(name="person", max_rows=4))
ROWS = np.random.default_rng(0).uniform(size=(40, 2))
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
    first, second = use(book, ROWS), use(book, ROWS[::-1])
    named = use(book, ROWS[:, ::-1], columns=["v", "u"])
    assert fits(first, second, named) == [3, 3, 3]
    assert fits(use(book, ROWS, columns=["u", "v"]), first) == [4, 4]


@pytest.mark.parametrize(
    "other",
    [ROWS[:20], ROWS[:-1], np.vstack([ROWS, ROWS[:1]]), 1 - ROWS, ROWS[:, :1], np.vstack([ROWS, ROWS])],
    ids=["half", "less", "a row twice", "other rows", "a column", "all twice"],
)
def test_other_rows_without_a_name_are_unknown(book, other):
    check_unknown(use(book, ROWS), use(book, other))


def test_halves_that_share_no_row_are_unknown_and_fits_that_cost_nothing_are_not(book):
    first = use(book, ROWS[::2])
    use(book, ROWS[1::2], charged=False)
    assert fits(first) == [1]
    check_unknown(first, use(book, ROWS[1::2]))


def test_names_tell_tables_apart_and_rows_are_counted_in_each(book):
    first, second = use(book, ROWS[:30], table="a"), use(book, ROWS[20:], table="b")
    assert fits(first, second) == [2, 2]
    third = use(book, 1 - ROWS)
    assert fits(first, second, third) == [2, 2, 1]
    check_unknown(first, use(book, ROWS[:20], table="a"))  # as the folds of clones have
    assert fits(second, third) == [2, 1]
    check_unknown(second, use(book, ROWS[25:]))


def test_parties_of_one_fit_are_tables_of_their_own(book):
    for _ in range(2):
        parties = [use(book, ROWS), use(book, 1 - ROWS)]
        book.join_fit(parties)
    assert fits(*parties) == [2, 2]
    book.join_fit([parties[0], use(book, ROWS / 2)])
    check_unknown(parties[1])


def test_parts_of_a_division_lose_what_the_worst_part_lost(book):
    book.divide(ROWS, LABELS, count=4)
    training = [use(book, ROWS[label != LABELS]) for label in range(4)]
    assert fits(*training) == [3] * 4
    whole = use(book, ROWS)
    assert fits(whole, *training) == [4] * 5
    test = use(book, ROWS[LABELS == 1])  # its rows lost no more, but nobody may know which ones they are
    assert fits(test, whole) == [5, 5]
    assert fits(use(book, ROWS[LABELS == 0]), test, use(book, ROWS[LABELS == 2])) == [5, 5, 5]
    assert len(whole.rows) == len(test.rows) == 40


def test_what_a_part_states_does_not_tell_which_rows_it_has(book):
    book.divide(ROWS, LABELS % 2, count=2)
    once, twice = ROWS[LABELS % 2 == 0], ROWS[LABELS % 2 == 1]
    uses = [use(book, once), use(book, twice), use(book, twice)]
    assert fits(*uses) == [2, 2, 2]
    assert [each.uses for each in uses] == [1, 1, 2]
    probes = [use(book, ROWS[at : at + 1], table=f"row {at}") for at in range(40)]
    check_unknown(*probes)  # of one row without a name, and of a table that has one
    named = ProcessLedger()
    named.divide(ROWS, LABELS % 2, count=2)
    use(named, once, table="all")
    assert fits(*[use(named, ROWS[at : at + 1], table=f"row {at}") for at in range(40)]) == [2] * 40


def test_several_divisions_and_parts_of_parts_add_up(book):
    other = np.arange(40) // 10
    book.divide(ROWS, LABELS, count=4)
    book.divide(ROWS, other, count=4)
    first = [use(book, ROWS[label != LABELS]) for label in range(4)]
    second = [use(book, ROWS[other != label]) for label in range(3)]
    assert fits(*first, *second) == [6] * 7
    train, inner = ROWS[LABELS != 0], np.arange(30) % 3
    book.divide(train, inner, count=3)
    deeper = [use(book, train[inner != label]) for label in range(3)]
    assert fits(*deeper, *first) == [8] * 7  # two of three for those that are not in fold 0


def test_a_part_that_may_be_another_counts_as_the_whole(book):
    book.divide(ROWS, np.zeros(40, dtype=int), count=2)  # nobody has label 1
    uses = [use(book, ROWS), use(book, ROWS[:0]), use(book, ROWS[:0])]
    assert fits(*uses) == [3, 3, 3]  # those of label 1, if there were any, are in the whole and twice alone
    assert uses[0].labels == ()  # may be all, or all others than label 1
    book.divide(1 - ROWS, np.zeros(40, dtype=int), count=2)
    empty = use(book, ROWS[:0])  # of the one table or of the other
    assert len(empty.tables) == 2
    assert fits(empty) == [4]


def test_parts_of_fixed_sizes_mean_nothing_under_add_remove(book):
    """One row less in the file, and another row is in another part."""
    book.divide(ROWS, LABELS % 2, count=2, has_fixed_sizes=True)
    replaced = PureDP(epsilon=0.25, relation="replace-one")
    parts = [use(book, ROWS[at == LABELS % 2], replaced) for at in range(2)]
    assert fits(*parts) == [1, 1]
    check_unknown(use(book, ROWS[LABELS % 2 == 0]))


def test_persons_are_divided_whole(book):
    people = np.arange(40) // 4
    labels = (people % 2).astype(np.int64)
    book.divide(ROWS, labels, count=2, person=people)
    parts = [use(book, ROWS[labels == at], PERSONS, person=people[labels == at]) for at in range(2)]
    assert fits(*parts) == [1, 1]
    assert len(parts[0].rows) == 10
    check_unknown(parts[0], use(book, ROWS + 1, PERSONS, person=people))
    rows_only = ProcessLedger()
    rows_only.divide(ROWS, labels, count=2)
    check_unknown(
        *[use(rows_only, ROWS[labels == at], PERSONS, person=people[labels == at]) for at in range(2)]
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
