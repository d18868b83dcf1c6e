"""Functions of rows: what depends on a row alone passes, what depends on its company is shown."""

import hashlib

import pytest

from privada.audit import audit_row_function
from privada.exceptions import InputError

ROWS = [[2**53 + 1 + 2 * at, float(at)] for at in range(6)]


def own_digest(rows):
    return [hashlib.blake2b(repr(row).encode()).digest() for row in rows]


@pytest.mark.parametrize("replaces", [False, True])
def test_a_digest_of_each_row_alone_passes(replaces):
    found = audit_row_function(own_digest, ROWS, replaces=replaces)
    assert found.passed, str(found)
    assert found.compared >= 20
    assert not found.refused


@pytest.mark.parametrize(
    ("function", "company"),
    [
        (lambda rows: [at % 2 for at in range(len(rows))], "reversed"),
        (lambda rows: [len(rows)] * len(rows), "twice"),
        (lambda rows: [row == min(rows, key=repr) for row in rows], "alone"),
        (lambda rows: [sum(isinstance(row[0], float) for row in rows)] * len(rows), "beside 0.5"),
    ],
    ids=["place", "number", "rank", "type"],
)
def test_what_depends_on_others_is_shown_by_its_company(function, company):
    found = audit_row_function(function, ROWS)
    assert not found.passed
    assert company in dict(found.differing)
    assert company in str(found)


def test_the_number_of_rows_may_count_where_it_is_public():
    assert audit_row_function(lambda rows: [len(rows)] * len(rows), ROWS, replaces=True).passed


def test_a_function_may_refuse_what_a_schema_would_not_let_in():
    def halves(rows):
        return [row[0] / 2 for row in rows]

    found = audit_row_function(halves, ROWS)
    assert found.passed
    assert "beside 'a word'" in found.refused


def test_a_function_that_fails_on_the_rows_themselves_has_not_passed():
    def fails_alone(rows):
        return own_digest(rows) if len(rows) > 1 else [rows[1]]

    with pytest.raises(IndexError):
        audit_row_function(fails_alone, ROWS)


def test_differences_show_no_row():
    found = audit_row_function(lambda rows: list(range(len(rows))), [[271828], [314159]])
    assert not found.passed
    assert "271828" not in str(found)


def test_too_few_rows_or_values_are_named():
    with pytest.raises(InputError, match="at least two rows, got 1"):
        audit_row_function(own_digest, ROWS[:1])
    with pytest.raises(InputError, match="one value for each of 6 rows, got 1"):
        audit_row_function(lambda _: [1], ROWS)
