"""Questions of the round protocol: one charge for all rounds, then disclosures to the curator."""

import numpy as np
import pytest

from privada.exceptions import AnswerError, InputError
from privada.methods.summarization import Participation, RoundBids, RoundPoints
from privada.privacy import Question


def test_taking_part_is_charged_once_and_says_against_whom(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    joining = Participation(size=10, batch=5, dimension=40, ask_share=0.5, guarantee=matching.owners)
    release = owner.answer(joining)
    assert int(release["rounds"]) == 2
    assert str(release["against"]).startswith("one owner at a time")
    assert owner.ledger.spent("o").epsilon == pytest.approx(4, rel=1e-3)


def test_bids_and_points_cost_nothing_more_and_survive_the_wire(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    bids = RoundBids(
        embedding=matching.embedding,
        target=np.ones(40),
        broadcast=np.zeros(40),
        count=0,
        batch=4,
        sent=[3],
        guarantee=matching.owners,
    )
    again = Question.from_bytes(bids.to_bytes())
    assert again.digest == bids.digest
    offered = owner.disclose(again, to="curator").rows
    assert len(offered["scores"]) == 4
    assert 3 not in offered["index"]
    points = RoundPoints(index=offered["index"], guarantee=matching.owners)
    assert owner.disclose(points, to="curator").rows["X"].shape == (4, 2)
    assert owner.ledger.spent("o") is None


def test_numbers_that_no_row_has_fail_without_showing_them(matching, made_owner):
    owner = made_owner(np.zeros((3, 2)), name="o", seed=1)
    with pytest.raises(AnswerError) as failed:
        owner.disclose(RoundPoints(index=[10**6], guarantee=matching.owners), to="curator")
    assert "1000000" not in str(failed.value)


@pytest.mark.parametrize("index", [[-1], [0.5], [[1]], ["a"]])
def test_numbers_are_whole_and_from_0_on(matching, index):
    with pytest.raises(InputError, match="index"):
        RoundPoints(index=index, guarantee=matching.owners)
