"""Raw rows for a named curator: allowed by the policy only, logged as not differentially private."""

import pickle
import sys
import types

import numpy as np
import pytest
from dp_accounting import NoOpDpEvent

from privada import Disclosure, Owner, Policy, Question, Schema
from privada.exceptions import ApprovalPending, InputError, PolicyError
from privada.privacy import PureDP
from privada.privacy.mechanism import Plan

AR = "add/remove"


class FirstRows(Question):
    """Ask for the first rows, as they are.

    Privacy
    -------
    None: this is a disclosure.
    """

    kind = "summaries.rows"
    answered_by = "disclosing_room:answer"
    discloses = True

    def planned(self):
        return Plan(draws={}, event=NoOpDpEvent())

    def parts(self):
        return {}, {}

    @classmethod
    def from_parts(cls, plain, arrays, *, guarantee, salt):
        return cls(guarantee=guarantee, salt=salt)


@pytest.fixture
def question(monkeypatch):
    room = types.ModuleType("disclosing_room")
    room.answer = lambda question, rows, draw: {"rows": next(rows.batches()).X[:2].copy()}
    monkeypatch.setitem(sys.modules, "disclosing_room", room)
    return FirstRows(guarantee=PureDP(epsilon=1, relation=AR))


def house(**policy):
    return Owner(
        np.full((5, 1), 0.25),
        schema=Schema.of_numbers(bounds=(0, 1), width=1),
        dataset="rows",
        budget=PureDP(epsilon=1, relation=AR),
        policy=Policy(**policy),
    )


def test_it_goes_to_the_named_curator_and_is_logged(question):
    owner = house(curators=("curator",))
    disclosure = owner.disclose(question, to="curator")
    assert isinstance(disclosure, Disclosure)
    assert disclosure.rows["rows"].tolist() == [[0.25], [0.25]]
    last = list(owner.ledger.lines("rows"))[-1]
    assert last.kind == "disclosure"
    assert "not differentially private" in str(owner.ledger.export())
    assert owner.ledger.spent("rows") is None, "a disclosure has no price: it has no guarantee"
    owner.ledger.verify([disclosure.receipt])


def test_nobody_else_gets_it(question):
    with pytest.raises(PolicyError, match="discloses no rows to 'curator'"):
        house().disclose(question, to="curator")
    with pytest.raises(PolicyError, match="does not answer summaries"):
        house(curators=("curator",), methods=("cells",)).disclose(question, to="curator")
    with pytest.raises(ApprovalPending):
        house(curators=("curator",), approval=True).disclose(question, to="curator")


def test_a_disclosure_is_no_release(question):
    owner = house(curators=("curator",))
    with pytest.raises(InputError, match="use disclose"):
        owner.answer(question)
    disclosure = owner.disclose(question, to="curator")
    assert "0.25" not in repr(disclosure)
    assert "not differentially private" in repr(disclosure)
    with pytest.raises(InputError, match="cannot be pickled"):
        pickle.dumps(disclosure)
