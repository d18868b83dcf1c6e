"""What an owner decides before it charges: in which order, and from public things only."""

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner, Policy, Schema
from privada._toml import Section
from privada.exceptions import ApprovalPending, InputError, PolicyError, StudyError
from privada.parties.permissions.policy import check_terms, price_all
from privada.privacy import PureDP, Question, QuestionHeader

AR = "add/remove"
SCHEMA = Schema.of_numbers(bounds=(0, 1), width=1)
BUDGET = PureDP(epsilon=1, relation=AR)


def question(epsilon=0.01, centers=2, **more):
    tables = (NearestCells(centers=np.linspace(0.1, 0.9, centers)[:, None]),)
    return CellStatistics(tables=tables, guarantee=PureDP(epsilon=epsilon, relation=AR), **more)


def house(rows=9, **more):
    return Owner(np.full((rows, 1), 0.1), schema=SCHEMA, dataset="clinic", budget=BUDGET, **more)


def header(**more):
    return QuestionHeader.of(question(**more))


def test_a_header_tells_what_its_question_will_be():
    asked = question(salt="again")
    for found in (QuestionHeader.of(asked), Question.peek(asked.to_bytes())):
        assert (found.kind, found.method, found.salt) == (asked.kind, "cells", "again")
        assert (found.digest, found.guarantee, found.turn) == (asked.digest, asked.guarantee, None)
    assert Question.peek(asked.to_bytes()).size == len(asked.to_bytes())


def test_size_and_method_are_decided_before_a_person_is_asked():
    with pytest.raises(PolicyError, match="the owner reads at most 10"):
        Policy(largest_question=10, methods=(), approval=True).admit_header(header())
    with pytest.raises(PolicyError, match=r"does not answer cells \(allowed: marginals\)"):
        Policy(methods=("marginals",), approval=True).admit_header(header(), approved=True)
    with pytest.raises(ApprovalPending, match=f"Question {header().digest[:12]} waits"):
        Policy(methods=("cells",), approval=True).admit_header(header())
    Policy(methods=("cells",), approval=True).admit_header(header(), approved=True)
    Policy().admit_header(header())


def test_what_costs_next_to_nothing_is_refused():
    """Else a budget pays for any number of questions, and an owner works for nothing."""
    policy = Policy(lowest_share=1e-3)
    policy.admit(question(), share=1e-3)
    with pytest.raises(
        PolicyError, match="a share of 1e-15 of the budget; the owner answers none below 0.001"
    ):
        policy.admit(question(), share=1e-15)
    Policy().admit(question(), share=1e-15)
    with pytest.raises(InputError, match="Expected lowest_share to be at most largest_share = 0.1, got 0.2"):
        Policy(lowest_share=0.2, largest_share=0.1)


def test_work_is_reckoned_for_a_public_size():
    asked = question(centers=1000)
    declared = Schema.of_numbers(bounds=(0, 1), width=1, size=10**6)
    policy = Policy(longest_answer=0.5)
    with pytest.raises(
        PolicyError, match=r"1 seconds for 1000000 rows; the owner allows 0.5 \(longest_answer"
    ):
        policy.admit_work(asked, declared)
    with pytest.raises(PolicyError, match="for 1000000 rows"):
        policy.admit_work(asked, SCHEMA)  # which declares no size
    Policy(longest_answer=0.5, assumed_size=1000).admit_work(asked, SCHEMA)
    Policy().admit_work(asked, declared)


@pytest.mark.parametrize("rows", [1, 2000])
def test_the_true_number_of_rows_decides_nothing(rows):
    owner = house(rows, policy=Policy(longest_answer=1e-6))
    with pytest.raises(PolicyError, match="could take .* for 1000000 rows"):
        price_all(
            [question()],
            schema=owner.schema,
            policy=owner.policy,
            ledger=owner.ledger,
            dataset="clinic",
        )


class Watched(CellStatistics):
    """Tells whether it was tried."""

    def fits(self, schema):
        raise AssertionError("tried before the policy was asked")


def test_terms_and_prices_are_known_before_anything_is_tried():
    asked = Watched(tables=question().tables, guarantee=question().guarantee)
    owner = house()
    check_terms(asked, schema=owner.schema, budget=BUDGET)
    given = {"schema": owner.schema, "ledger": owner.ledger, "dataset": "clinic"}
    with pytest.raises(PolicyError, match="does not answer cells"):
        price_all([asked], policy=Policy(methods=()), **given)
    with pytest.raises(PolicyError, match="none below 0.5"):
        price_all([asked], policy=Policy(lowest_share=0.5), **given)
    with pytest.raises(AssertionError, match="tried"):
        price_all([asked], policy=Policy(), **given)


def read(text):
    return Policy.from_section(Section.parse(f"[policy]\n{text}", name="owner.toml").section("policy"))


def test_limits_are_read_from_an_owners_file():
    found = read("lowest_share = 0.001\nlargest_question = 1000\nlongest_answer = 60\nassumed_size = 5000")
    assert found == Policy(lowest_share=0.001, largest_question=1000, longest_answer=60.0, assumed_size=5000)
    assert read("") == Policy()


@pytest.mark.parametrize(
    "line",
    ["lowest_share = 2.0", "largest_question = 0", "longest_answer = -1.0", "assumed_size = 0"],
)
def test_limits_that_make_no_sense_are_named(line):
    with pytest.raises(StudyError, match=f"line 2, policy.{line.split()[0]}: "):
        read(line)
