"""The one door: check, charge, open, draw, sign; never refund."""

import logging

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner, Policy, Schema
from privada.exceptions import (
    AnswerError,
    ApprovalPending,
    BudgetError,
    InputError,
    LedgerError,
    PolicyError,
    PrivacyLeakWarning,
    RehearsalWarning,
    RelationError,
    SchemaError,
)
from privada.parties import Category, Number
from privada.parties.permissions import KnownLearner
from privada.privacy import ApproxDP, Asker, Ledger, OwnerKey, PureDP, Release, Unit

AR = "add/remove"
CENTERS = np.array([[0.2], [0.8]])


def ask(epsilon=0.5, relation=AR, salt="", **more):
    return CellStatistics(
        tables=(NearestCells(centers=CENTERS),),
        guarantee=PureDP(epsilon=epsilon, relation=relation),
        salt=salt,
        **more,
    )


def owner(data=None, *, budget=None, schema=None, **more):
    data = np.linspace(0, 1, 10)[:, None] if data is None else data
    schema = Schema.of_numbers(bounds=(0, 1), width=1, size=10) if schema is None else schema
    return Owner(data, schema=schema, dataset="rows", budget=budget or PureDP(epsilon=1, relation=AR), **more)


def test_an_answer_is_a_signed_paid_release():
    house = owner()
    question = ask()
    release = house.answer(question)
    assert isinstance(release, Release)
    release.verify(public=house.public_key, question=question)
    assert house.ledger.spent("rows").epsilon == pytest.approx(0.5)
    assert release.receipt.question == question.digest
    assert release["counts"].shape == (2,)
    assert not release.rehearsal


def test_an_answer_checks_a_question_once(monkeypatch):
    """Terms, price and what a question holds are looked at once before the charge, and never after it."""
    from privada.parties import permissions as policy

    calls = []
    for place, name in ((CellStatistics, "fits"), (policy.Policy, "admit"), (policy.Policy, "admit_work")):
        real = getattr(place, name)

        def counted(*args, _real=real, _name=name, **more):
            calls.append(_name)
            return _real(*args, **more)

        monkeypatch.setattr(place, name, counted)
    terms = policy.check_terms
    monkeypatch.setattr(
        "privada.parties.owner.check_terms",
        lambda *args, **more: calls.append("terms") or terms(*args, **more),
    )
    owner().answer(ask())
    assert calls == ["terms", "admit", "fits", "admit_work"]


def test_price_never_charges():
    house = owner()
    assert house.price(ask()).share == pytest.approx(0.5)
    assert house.ledger.spent("rows") is None


def test_the_budget_is_the_end():
    house = owner()
    house.answer(ask())
    house.answer(ask(salt="again"))
    with pytest.raises(BudgetError, match="Nothing was charged"):
        house.answer(ask(epsilon=0.001))
    assert house.ledger.spent("rows").epsilon == pytest.approx(1)


def test_the_line_is_durable_before_the_rows_are_opened(tmp_path, monkeypatch):
    ledger = Ledger.open(tmp_path / "l.sqlite", OwnerKey.generate())
    ledger.open_budget("rows", PureDP(epsilon=1, relation=AR))
    house = owner(ledger=ledger)

    def look(*_, **__):
        with Ledger.open(tmp_path / "l.sqlite", ledger.key) as other:
            assert other.spent("rows").epsilon == pytest.approx(0.5)
        raise RuntimeError("seen")

    monkeypatch.setattr("privada.parties.owner.answer_rows", look)
    with pytest.raises(AnswerError):
        house.answer(ask())


def test_a_failed_draw_is_still_charged_and_tells_nothing(monkeypatch, caplog):
    house = owner()
    monkeypatch.setattr(
        "privada.methods.cells.owner.tabulate",
        lambda *_: (_ for _ in ()).throw(ValueError("row 3 is 0.333")),
    )
    with caplog.at_level(logging.ERROR), pytest.raises(AnswerError) as caught:
        house.answer(ask())
    assert "0.333" not in str(caught.value)
    assert "0.333" not in caplog.text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert house.ledger.spent("rows").epsilon == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Policy(methods=("transport",)), "does not answer cells"),
        (Policy(methods=()), "allowed: none"),
        (Policy(largest_share=0.1), "at most 10.0% at once"),
    ],
)
def test_the_policy_decides_before_the_charge(policy, message):
    house = owner(policy=policy)
    with pytest.raises(PolicyError, match=message):
        house.answer(ask())
    assert house.ledger.spent("rows") is None


def test_a_person_can_be_asked_first():
    house = owner(policy=Policy(approval=True))
    with pytest.raises(ApprovalPending):
        house.answer(ask())
    assert house.ledger.spent("rows") is None
    assert house.answer(ask(), approved=True)


def test_relations_are_converted_or_refused():
    replaced = owner(budget=PureDP(epsilon=1, relation="replace-one"))
    replaced.answer(ask(epsilon=0.5))
    assert replaced.ledger.spent("rows").epsilon == pytest.approx(1)
    with pytest.raises(RelationError):
        owner().answer(ask(relation="replace-one"))


def test_questions_must_fit_the_public_schema():
    house = owner()
    wide = CellStatistics(
        tables=(NearestCells(centers=np.eye(3)),), guarantee=PureDP(epsilon=0.1, relation=AR)
    )
    labelled = ask(n_classes=2)
    for question in (wide, labelled):
        with pytest.raises(InputError):
            house.answer(question)
    for junk in (None, "question", b"bytes"):
        with pytest.raises(InputError, match="answers Questions"):
            house.answer(junk)
    assert house.ledger.spent("rows") is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_rows_are_an_error_at_the_owners_before_any_charge(bad):
    with pytest.raises(SchemaError):
        owner(np.array([[0.1], [bad]]))


def test_other_bad_rows():
    with pytest.raises(SchemaError, match="no rows"):
        owner(np.empty((0, 1)))
    assert owner(np.empty((0, 1)), allow_empty=True).answer(ask())["counts"].shape == (2,)
    with pytest.raises(SchemaError, match="Expected rows of 1 columns"):
        owner(np.zeros((3, 2)))


@pytest.mark.parametrize("budget", [None, 1.0, {"epsilon": 1}])
def test_an_absent_budget(budget):
    with pytest.raises(InputError, match="Expected budget to be a Guarantee"):
        Owner(np.zeros((3, 1)), schema=Schema.of_numbers(bounds=(0, 1), width=1), dataset="r", budget=budget)


def test_replace_one_needs_the_true_public_size():
    budget = PureDP(epsilon=1, relation="replace-one")
    with pytest.raises(SchemaError, match="must be the true one"):
        owner(np.zeros((3, 1)), budget=budget)
    with pytest.raises(SchemaError, match="declare it"):
        owner(budget=budget, schema=Schema.of_numbers(bounds=(0, 1), width=1))


def test_a_large_delta_is_warned_about():
    with pytest.warns(PrivacyLeakWarning, match="above 1/\\(10 n\\)"):
        owner(budget=ApproxDP(epsilon=1, delta=0.05, relation=AR))


def test_a_person_is_the_unit_when_the_schema_says_so():
    unit = Unit(name="person", max_rows=2)
    schema = Schema(columns=[Number(name="x", low=0, high=1)], person_id="who", max_rows=2)
    budget = PureDP(epsilon=1, relation=AR, unit=unit)
    house = Owner(np.full((30, 1), 0.2), person=np.zeros(30), schema=schema, dataset="rows", budget=budget)
    question = CellStatistics(
        tables=(NearestCells(centers=CENTERS),), guarantee=PureDP(epsilon=1, relation=AR, unit=unit)
    )
    assert question.plan.draws["counts"].scale == 2.0
    assert house.answer(question)["counts"][0] <= 2 + 2 * 40
    with pytest.raises(RelationError, match="priced for one row"):
        house.answer(ask())


def test_rehearsals_are_stamped():
    with pytest.warns(UserWarning, match="not private"):
        house = owner(insecure_seed=1)
    release = house.answer(ask())
    assert "rehearsal: not private" in release.stamps
    assert "rehearsal: not private" in repr(release)
    assert "rehearsal: not private" in release.explain()
    assert Release.from_bytes(release.to_bytes()).rehearsal


def test_reprs_show_no_row():
    house = owner(np.array([[0.123456789]] * 10))
    release = house.answer(ask())
    for text in (repr(house), repr(release), str(house.ledger), repr(house.schema)):
        assert "0.1234" not in text


def test_nothing_in_a_label_error_shows_the_label():
    schema = Schema.of_numbers(bounds=(0, 1), width=1, label=Category(name="y", values=("a", "b")))
    with pytest.raises(SchemaError) as caught:
        owner(np.zeros((2, 1)), schema=schema, y=np.array(["a", "secret"]))
    assert "secret" not in str(caught.value)


def test_a_question_is_charged_once_and_gets_the_same_release():
    house = owner()
    first, second = house.answer(ask()), house.answer(ask())
    assert first.signature == second.signature
    assert np.array_equal(first["counts"], second["counts"])
    assert house.ledger.spent("rows").epsilon == pytest.approx(0.5)
    assert house.answer(ask(salt="anew")).signature != first.signature
    assert house.ledger.spent("rows").epsilon == pytest.approx(1.0)


def test_an_answer_that_was_paid_for_is_given_when_the_budget_is_used_up():
    house = owner(policy=Policy(approval=True))
    first = house.answer(ask(1.0), approved=True)
    with pytest.raises(BudgetError):
        house.answer(ask(0.1), approved=True)
    assert house.answer(ask(1.0)).signature == first.signature


def test_a_failed_answer_stays_failed_and_is_not_charged_again(monkeypatch):
    house = owner()
    monkeypatch.setattr("privada.parties.owner.answer_rows", lambda *_, **__: 1 / 0)
    for _ in range(3):
        with pytest.raises(AnswerError):
            house.answer(ask())
    monkeypatch.undo()
    with pytest.raises(AnswerError, match="another salt"):
        house.answer(ask())
    assert house.ledger.spent("rows").epsilon == pytest.approx(0.5)


def test_an_answer_that_no_file_can_hold_has_failed_and_is_not_drawn_again(monkeypatch):
    house, drawn = owner(), []
    monkeypatch.setattr(
        "privada.parties.owner.answer_rows", lambda *_, **__: drawn.append(1) or {"counts": float("nan")}
    )
    for _ in range(3):
        with pytest.raises(AnswerError):
            house.answer(ask())
    assert len(drawn) == 1
    assert house.ledger.spent("rows").epsilon == pytest.approx(0.5)


def test_what_was_answered_with_seeded_noise_is_not_given_as_private(tmp_path):
    with Ledger.open(tmp_path / "l.sqlite", OwnerKey.generate()) as ledger:
        ledger.open_budget("rows", PureDP(epsilon=1, relation=AR))
        with pytest.warns(RehearsalWarning):
            owner(ledger=ledger, insecure_seed=1).answer(ask())
        with pytest.raises(AnswerError, match="seeded noise"):
            owner(ledger=ledger).answer(ask())


def test_an_owner_opens_no_budget_of_a_ledger_that_it_is_given(tmp_path):
    with Ledger.open(tmp_path / "l.sqlite", OwnerKey.generate()) as ledger:
        with pytest.raises(BudgetError, match="open its budget"):
            owner(ledger=ledger)
        assert ledger.datasets() == ()
        ledger.open_budget("rows", PureDP(epsilon=1, relation=AR))
        with pytest.raises(LedgerError, match="cannot become"):
            owner(ledger=ledger, budget=PureDP(epsilon=2, relation=AR))
        assert owner(ledger=ledger).dataset == "rows"


def test_the_line_says_who_asked():
    house, alice = owner(), Asker("alice", "ab" * 32, project="stroke", purpose="triage")
    house.answer(ask(0.1, salt="a"), asker=alice)
    house.answer_file(ask(0.1, salt="b").to_bytes(), asker=alice)
    house.answer(ask(0.1, salt="c"))
    assert [line.asker for line in house.ledger.lines("rows")] == [None, alice, alice, None]
    assert house.ledger.verify().lines == 4
    assert house.ledger.export("rows")["datasets"]["rows"]["lines"][1]["asker"] == alice.to_dict()


def test_a_price_for_a_learner_says_whether_its_allowance_pays():
    alice = Asker("alice", "ab" * 32)
    known = KnownLearner(name="alice", key=alice.key, allowance=PureDP(epsilon=0.5, relation=AR))
    house = owner(learners=[known])
    house.answer(ask(0.25, salt="a"), asker=alice)
    before = house.ledger.export()
    assert house.price(ask(0.5)).allowance is None
    assert house.price(ask(0.5)).affordable
    quote = house.price(ask(0.5), asker=alice)
    assert (quote.affordable, quote.allowance.share, quote.allowance.remaining_share) == (False, 1.0, 0.5)
    assert "a larger allowance of 'alice'" in quote.advice
    assert house.price(ask(0.25), asker=alice).affordable
    pair = [ask(0.25, salt="a"), ask(0.25, salt="b")]
    assert house.price_all(pair, asker=alice).allowance.share == 0.5  # it has the answer to the first
    assert not house.price_all([*pair, ask(0.25, salt="c")], asker=alice).affordable
    assert house.ledger.export() == before
