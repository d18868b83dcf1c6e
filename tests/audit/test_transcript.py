"""Answers with a witness, and answers whose mechanisms say what was fixed beforehand."""

from dataclasses import dataclass

import numpy as np
import pytest

from privada.audit import Sample
from privada.audit.transcript import (
    WatchedNoise,
    _Playback,
    coupled,
    draw_outputs,
    play_back,
    record_draws,
    same,
    witnessed,
)
from privada.exceptions import InputError
from privada.parties.schema import Schema
from privada.privacy import Laplace, PureDP, Question
from privada.privacy.mechanism import Plan

SAMPLE = Sample.of(np.array([[0.1], [0.9], [0.8]]), schema=Schema.of_numbers(bounds=(0, 1), width=1))
MECHANISM = Laplace(sensitivity=1, scale=2.0)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Asked(Question):
    kind = "toy.asked"
    answered_by = f"{__name__}:count"

    def planned(self):
        return Plan(draws={"all": MECHANISM, "large": MECHANISM})


class Shuffled(Asked):
    answered_by = f"{__name__}:count_some"


def count(question, rows, draw):
    """The second draw is about the rows above what the first one said."""
    X = np.concatenate([batch.X[:, 0] for batch in rows.batches()])
    every = draw("all", np.array([len(X)]))
    return {"all": every, "large": draw("large", np.array([np.sum(every[0] < X * 10)]))}


def count_some(question, rows, draw):
    draw.noise.permutation(3)
    return count(question, rows, draw)


QUESTION = Asked(guarantee=PureDP(epsilon=1.0, relation="add/remove"))


def test_a_witness_sees_exact_values_and_changes_no_answer():
    calls, payload = witnessed(QUESTION, SAMPLE.rows(), coupled(1))
    tape, taped_payload = record_draws(QUESTION, SAMPLE.rows(), coupled(1))
    assert [call.name for call in calls] == ["all", "large"]
    assert calls[0].exact.tolist() == [3]
    assert [same(drawn.output, payload[drawn.call.name]) for drawn in tape] == [True, True]
    assert all(same(payload[name], taped_payload[name]) for name in payload)


@pytest.mark.parametrize(("said", "above"), [(0, 3), (5, 2), (10, 0)])
def test_what_is_played_is_what_later_draws_hear(said, above):
    released = {"all": np.array([said]), "large": np.array([7])}
    calls, payload = play_back(QUESTION, SAMPLE.rows(), released, coupled(0))
    assert payload["large"].tolist() == [7]
    assert [call.exact.tolist() for call in calls] == [[3], [above]]
    assert calls[0].mechanism is QUESTION.plan.draws["all"]


def test_one_output_is_drawn_for_each_call():
    calls, _ = witnessed(QUESTION, SAMPLE.rows(), coupled(1))
    once, again = draw_outputs(calls, coupled(2)), draw_outputs(calls, coupled(2))
    assert list(once) == ["all", "large"]
    assert all(same(once[name], again[name]) for name in once)


def test_noise_that_an_answerer_uses_beside_its_mechanisms_is_noticed():
    released = {"all": np.array([3]), "large": np.array([7])}
    for question, used in ((QUESTION, False), (Shuffled(guarantee=QUESTION.guarantee), True)):
        source = WatchedNoise(coupled(0))
        play_back(question, SAMPLE.rows(), released, source)
        assert source.used is used
        assert not source.private


def test_a_playback_has_neither_event_nor_interval():
    for ask in (lambda mechanism: mechanism.event, lambda mechanism: mechanism.half_width(0.9)):
        with pytest.raises(InputError, match="A playback is no mechanism"):
            ask(_Playback(released=np.zeros(1)))


def test_reprs_show_no_exact_value():
    (drawn, _), _ = record_draws(QUESTION, SAMPLE.rows(), coupled(1))
    assert (repr(drawn), repr(drawn.call)) == (
        "<Drawn all: discrete Laplace>",
        "<Call all: discrete Laplace>",
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.array([0.0]), np.array([-0.0])),
        (1, 1.0),
        (1, True),
        ("1", 1),
    ],
    ids=str,
)
def test_values_are_the_same_only_to_the_last_bit(left, right):
    assert not same(left, right)
    assert same(left, left)
    assert same(np.array([np.nan]), np.array([np.nan]))
