"""What an owner decides before it charges: in which order, and from public things only."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner, Policy, Schema
from privada._toml import Section
from privada.exceptions import ApprovalPending, BudgetError, InputError, LedgerError, PolicyError, StudyError
from privada.parties.owner_file import OwnerFile
from privada.parties.permissions import (
    Admission,
    KnownLearner,
    KnownLearners,
    LearnerCard,
    Terms,
    check_terms,
    price_all,
)
from privada.privacy import ZCDP, Asker, Ledger, OwnerKey, PureDP, Question, QuestionHeader
from privada.privacy.accounting.filters import open_filter
from tests.parties.test_owner_file import TOML, home  # noqa: F401 - a fixture

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


ALICE, BOB, EVE = (Asker(name, two * 32) for name, two in (("alice", "aa"), ("bob", "bb"), ("eve", "ee")))
QUESTION = "cd" * 32


@pytest.fixture
def ledger():
    with Ledger.open(":memory:", OwnerKey.generate()) as made:
        made.open_budget("rows", BUDGET)
        yield made


@pytest.fixture
def admission(ledger):
    known = KnownLearner(name="alice", key=ALICE.key, approval=True)
    return Admission(ledger, "rows", KnownLearners([known], budget=open_filter(BUDGET)))


def test_a_refusal_is_recorded_and_a_wait_or_a_fault_is_not(ledger, admission):
    for error in (ApprovalPending("wait"), LedgerError("disk"), PolicyError("too much")):
        with pytest.raises(type(error)), admission.on_terms(QUESTION, "cells", ALICE, Policy()):
            raise error
    (line,) = list(ledger.lines("rows"))[1:]
    assert (line.kind, line.asker, line.detail["text"]) == ("refusal", ALICE, "too much")


def test_a_refusal_that_cannot_be_recorded_stands(ledger, admission, monkeypatch):
    def fail(*_, **__):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(ledger, "refuse", fail)
    with pytest.raises(PolicyError, match="too much"), admission.on_terms(QUESTION, None, ALICE, Policy()):
        raise PolicyError("too much")


def test_who_approved_is_known(ledger, admission):
    with admission.on_terms(QUESTION, "cells", ALICE, Policy()) as terms:
        assert terms.policy.approval
        with pytest.raises(ApprovalPending, match=QUESTION[:12]):
            admission.wait_for_a_person(QUESTION, terms, approved=False)
        assert admission.wait_for_a_person(QUESTION, terms, approved=True) == ""
        ledger.approve("rows", QUESTION, by="Dr Who")
        assert admission.wait_for_a_person(QUESTION, terms, approved=False) == "Dr Who"
        ledger.reject("rows", QUESTION, by="Dr Else", reason="no", reconsider=True)
        with pytest.raises(PolicyError, match="Dr Else refused it: no"):
            admission.is_approved(QUESTION, terms, approved=True)


def test_without_a_list_nothing_is_shared_or_counted(ledger):
    admission = Admission(ledger, "rows", None)
    admission.share(QUESTION, Terms(policy=Policy(approval=True), asker=ALICE), approved=False)
    assert len(list(ledger.lines("rows"))) == 1


def test_a_quote_for_a_learner_is_within_its_allowance_and_leaves_no_trace(ledger):
    known = KnownLearner(
        name="alice", key=ALICE.key, methods=("cells",), allowance=PureDP(epsilon=0.5, relation="add/remove")
    )
    admission = Admission(ledger, "rows", KnownLearners([known], budget=open_filter(BUDGET)))
    tables = (NearestCells(centers=np.array([[0.2], [0.8]])),)
    question = CellStatistics(tables=tables, guarantee=PureDP(epsilon=0.25, relation="add/remove"))
    quote = ledger.price("rows", question.price)
    assert admission.price(quote, [question], None, Policy()) == quote
    assert Admission(ledger, "rows", None).price(quote, [question], ALICE, Policy()) == quote
    found = admission.price(quote, [question], Asker("somebody", ALICE.key), Policy())
    assert (found.allowance.learner, found.allowance.share, found.affordable) == ("alice", 0.5, True)
    with pytest.raises(PolicyError, match="does not know 'eve'"):
        admission.price(quote, [question], Asker("eve", "ee" * 32), Policy())
    other = Admission(
        ledger, "rows", KnownLearners([replace(known, methods=("marginals",))], budget=open_filter(BUDGET))
    )
    with pytest.raises(PolicyError, match="does not answer cells to 'alice'"):
        other.price(quote, [question], ALICE, Policy())
    assert [line.kind for line in ledger.lines("rows")] == ["budget"]


def ask(epsilon=0.25, salt=""):
    guarantee = PureDP(epsilon=epsilon, relation=AR)
    return CellStatistics(tables=(NearestCells(centers=[[0.2], [0.8]]),), guarantee=guarantee, salt=salt)


def known(asker, **more):
    return KnownLearner(name=asker.learner, key=asker.key, **more)


def owner(*learners, listed=True, **more):
    return Owner(
        np.linspace(0, 1, 10)[:, None],
        schema=Schema.of_numbers(bounds=(0, 1), width=1, size=10),
        dataset="rows",
        budget=PureDP(epsilon=1, relation=AR),
        learners=learners if listed else None,
        **more,
    )


def said(house):
    return [
        (line.kind, line.asker.learner if line.asker else "", line.detail.get("text", ""))
        for line in house.ledger.lines("rows")
    ][1:]


def doors(house):
    """Both ways to ask."""
    return (
        house.answer,
        lambda question, **more: house.answer_file(question.to_bytes(), **more),
    )


def test_only_known_learners_are_answered_and_by_their_keys():
    house = owner(known(ALICE))
    thief = Asker("alice", EVE.key)
    for door in doors(house):
        for asker, why in ((None, "Nobody signed"), (EVE, "not know 'eve'"), (thief, "not know 'alice'")):
            with pytest.raises(PolicyError, match=f"{why}.*Nothing was charged"):
                door(ask(), asker=asker)
    assert said(house) == []
    assert sum(house.ledger.unlisted("rows").values()) == 6
    house.answer(ask(), asker=Asker("Alice of somewhere", ALICE.key, project="p", purpose="q"))
    (line,) = list(house.ledger.lines("rows"))[1:]
    assert line.asker == Asker("alice", ALICE.key, project="p", purpose="q")


def test_a_stranger_does_not_get_what_a_learner_paid_for():
    house, question = owner(known(ALICE)), ask()
    house.answer(question, asker=ALICE)
    for door in doors(house):
        with pytest.raises(PolicyError, match="does not know 'eve'"):
            door(question, asker=EVE)
    assert house.answer(question, asker=ALICE)["counts"].shape == (2,)


def test_an_empty_list_answers_nobody():
    with pytest.raises(PolicyError, match="does not know"):
        owner().answer(ask(), asker=ALICE)


def test_an_overdrawn_learner_is_refused_and_others_go_on():
    half = PureDP(epsilon=0.5, relation=AR)
    house = owner(known(ALICE, allowance=half), known(BOB, allowance=PureDP(epsilon=0.75, relation=AR)))
    house.answer(ask(salt="1"), asker=ALICE)
    house.answer_file(ask(salt="2").to_bytes(), asker=ALICE)
    for door in doors(house):
        with pytest.raises(BudgetError, match=r"allowance of 'alice' does not.*Nothing was charged"):
            door(ask(salt="3"), asker=ALICE)
    house.answer(ask(salt="4"), asker=BOB)
    house.answer(ask(salt="5"), asker=BOB)
    with pytest.raises(BudgetError, match="The budget does not allow it"):
        house.answer(ask(salt="6"), asker=BOB)
    kinds = [kind for kind, _, _ in said(house)]
    assert kinds == ["allowance"] * 2 + ["charge", "charge", "refusal"] * 2
    assert house.ledger.verify().lines == 9
    assert house.ledger.spent("rows").epsilon == pytest.approx(1)


def test_what_another_learner_paid_for_counts_for_who_gets_it():
    quarter = PureDP(epsilon=0.25, relation=AR)
    house = owner(known(ALICE), known(BOB, allowance=quarter))
    first = house.answer(ask(salt="1"), asker=ALICE)
    assert house.answer(ask(salt="1"), asker=BOB).to_bytes() == first.to_bytes()
    house.answer(ask(salt="2"), asker=ALICE)
    for door in doors(house):
        with pytest.raises(BudgetError, match="allowance of 'bob'"):
            door(ask(salt="2"), asker=BOB)
    assert [kind for kind, _, _ in said(house)] == ["allowance", "charge", "copy", "charge", "refusal"]
    assert house.ledger.spent("rows").epsilon == pytest.approx(0.5)


def test_methods_and_terms_are_each_learners_own():
    house = owner(known(ALICE, methods=("marginals",)), known(BOB, expires=date(2020, 1, 1)))
    refused = ((ALICE, r"does not answer cells to 'alice'"), (BOB, r"'bob' may not ask any more"))
    for door in doors(house):
        for asker, why in refused:
            with pytest.raises(PolicyError, match=why):
                door(ask(), asker=asker)
    assert [(kind, who) for kind, who, _ in said(house)] == [("refusal", "alice"), ("refusal", "bob")]
    assert house.ledger.spent("rows") is None


def test_approval_is_the_policys_unless_a_learner_has_its_own():
    house = owner(known(ALICE), known(BOB, approval=False), policy=Policy(approval=True))
    house.answer(ask(salt="1"), asker=BOB)
    for door in doors(house):
        with pytest.raises(ApprovalPending):
            door(ask(salt="2"), asker=ALICE)
    assert [kind for kind, _, _ in said(house)] == ["charge"]
    eager = owner(known(ALICE, approval=True))
    with pytest.raises(ApprovalPending):
        eager.answer(ask(), asker=ALICE)


@pytest.mark.parametrize("door", [0, 1])
def test_an_approval_on_the_chain_is_honoured_and_named_on_the_charge(door):
    house = owner(known(ALICE), known(BOB), policy=Policy(approval=True))
    answer, question = doors(house)[door], ask(salt="1")
    house.ledger.approve("rows", question.digest, by="Dr Who", asker=ALICE)
    with pytest.raises(ApprovalPending):
        answer(question, asker=BOB)
    answer(question, asker=ALICE)
    line = list(house.ledger.lines("rows"))[-1]
    assert (line.kind, line.approver, line.asker) == ("charge", "Dr Who", ALICE)


@pytest.mark.parametrize("door", [0, 1])
def test_a_persons_refusal_stands_even_where_no_approval_is_needed(door):
    house, question = owner(known(ALICE)), ask()
    answer = doors(house)[door]
    house.ledger.reject("rows", question.digest, by="Dr Who", reason="ask for less")
    with pytest.raises(PolicyError, match="Dr Who refused it: ask for less"):
        answer(question, asker=ALICE)
    house.ledger.approve("rows", question.digest, by="Dr Who", reconsider=True)
    answer(question, asker=ALICE)
    assert house.ledger.verify()


def test_without_a_list_anybody_is_answered_as_before():
    house = owner(listed=False)
    house.answer(ask(salt="1"))
    house.answer(ask(salt="2"), asker=EVE)
    assert [who for _, who, _ in said(house)] == ["", "eve"]


@pytest.mark.parametrize(
    ("learners", "why"),
    [
        ([known(ALICE), known(ALICE)], "same name: alice"),
        ([known(ALICE), known(Asker("ALICE", BOB.key))], "same name: alice"),
        ([known(ALICE), known(Asker("other", ALICE.key))], "same key"),
        ([known(ALICE, allowance=PureDP(epsilon=2, relation=AR))], "more than the budget"),
        ([known(ALICE, allowance=ZCDP(rho=0.1, relation=AR))], "in the same terms"),
    ],
)
def test_a_list_that_contradicts_itself_is_refused(learners, why):
    with pytest.raises(InputError, match=why):
        owner(*learners)


LISTED = f"""
[[learners]]
name = "alice"
key = "{ALICE.key}"
methods = ["cells"]
allowance = {{ epsilon = 0.5 }}
expires = 2027-06-30
approval = true

[[learners]]
key = "bob.toml"
"""


def test_an_owners_file_lists_learners(home):  # noqa: F811
    (home / "owner.toml").write_text(TOML + LISTED)
    (home / "bob.toml").write_text(LearnerCard(name="bob", public_key=BOB.key).to_toml())
    alice, bob = OwnerFile.read(home / "owner.toml").learners
    assert alice == known(
        ALICE,
        methods=("cells",),
        allowance=PureDP(epsilon=0.5, relation=AR),
        expires=date(2027, 6, 30),
        approval=True,
    )
    assert bob == known(BOB)
    house = Owner.from_toml(home / "owner.toml")
    with pytest.raises(PolicyError, match="does not know 'eve'"):
        house.answer(ask(), asker=EVE)


def test_no_list_and_an_empty_list_are_different(home):  # noqa: F811
    assert OwnerFile.read(home / "owner.toml").learners is None
    (home / "owner.toml").write_text("learners = []\n" + TOML)
    assert OwnerFile.read(home / "owner.toml").learners == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((ALICE.key, "aa"), r"line 26, learners\.key: Expected key to be a public key"),
        (('"alice"', '""'), r"line 25, learners\.name: Expected name"),
        (("epsilon = 0.5", "epsilon = 5"), r"line 28, learners\.allowance.*more than the budget"),
        (("epsilon = 0.5", "rho = 0.5"), r"line 28, learners\.allowance.*same terms"),
        (("epsilon = 0.5", "share = 0.5"), r"line 28, learners\.allowance.*nobody knows"),
        (("2027-06-30", '"soon"'), r"line 29, learners\.expires: expected a day"),
        (("2027-06-30", "2027-06-30T00:00:00"), r"line 29, learners\.expires: expected a day"),
        (('"bob.toml"', f'"{ALICE.key}"\nname = "bob"'), r"learners\.key: Two learners have the same key"),
        (('"bob.toml"', '"eve.toml"'), r"eve\.toml"),
        (("approval", "aproval"), r"line 30, learners\.aproval: nobody knows"),
    ],
)
def test_a_bad_list_names_line_and_key(home, change, message):  # noqa: F811
    (home / "bob.toml").write_text(LearnerCard(name="bob", public_key=BOB.key).to_toml())
    text = TOML + LISTED
    assert text.count(change[0])
    (home / "owner.toml").write_text(text.replace(*change))
    with pytest.raises(StudyError, match=message):
        OwnerFile.read(home / "owner.toml")


def test_a_card_reads_back(tmp_path):
    card = LearnerCard(name="alice", public_key=ALICE.key, organisation='Hospital "Süd"')
    (tmp_path / "learner.toml").write_text(card.to_toml(), encoding="utf-8")
    assert LearnerCard.read(tmp_path / "learner.toml") == card
    (tmp_path / "learner.toml").write_text(card.to_toml().replace(ALICE.key, "no key"), encoding="utf-8")
    with pytest.raises(StudyError, match=r"learner\.public_key: Expected public_key"):
        LearnerCard.read(tmp_path / "learner.toml")


@pytest.mark.parametrize("door", [0, 1])
def test_an_approval_for_one_learner_is_none_for_another_who_asks_the_same(door):
    house = owner(known(ALICE), known(BOB), policy=Policy(approval=True))
    answer, question = doors(house)[door], ask()
    house.ledger.approve("rows", question.digest, by="Dr Who", asker=ALICE)
    answer(question, asker=ALICE)
    with pytest.raises(ApprovalPending):
        answer(question, asker=BOB)
    answer(question, asker=ALICE)
    house.ledger.approve("rows", question.digest, by="Dr Who", asker=BOB)
    answer(question, asker=BOB)
    kinds = [kind for kind, _, _ in said(house)]
    assert kinds == ["approval", "charge", "approval", "copy"]


@pytest.mark.parametrize(
    "terms", [{"expires": date(2020, 1, 1)}, {"allowance": PureDP(epsilon=0.1, relation=AR)}]
)
def test_nobody_is_asked_to_approve_what_would_be_refused(terms):
    house = owner(known(ALICE, **terms), policy=Policy(approval=True))
    with pytest.raises((PolicyError, BudgetError), match="'alice'"):
        house.answer(ask(), asker=ALICE)


def test_who_may_not_ask_is_known_before_the_question_is():
    house = owner(known(ALICE), known(BOB, expires=date(2020, 1, 1)))
    house.check_asker("cd" * 32, ALICE)
    for asker, why in ((EVE, "does not know 'eve'"), (None, "Nobody signed"), (BOB, "may not ask any more")):
        with pytest.raises(PolicyError, match=why):
            house.check_asker("cd" * 32, asker)
    assert [(kind, who) for kind, who, _ in said(house)] == [("refusal", "bob")]
    assert sum(house.ledger.unlisted("rows").values()) == 2
    owner(listed=False).check_asker("cd" * 32, None)
