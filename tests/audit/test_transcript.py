"""Answers with a record, with fixed outputs, and many at once."""

from dataclasses import dataclass

import numpy as np
import pytest

from privada.audit import Sample
from privada.audit.events import Outcomes
from privada.audit.transcript import (
    AnswerSource,
    WatchedNoise,
    _Playback,
    coupled,
    draw_outputs,
    flat,
    play_back,
    record_draws,
    same,
    sample_question,
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


SCHEMA = Schema.of_numbers(bounds=(0, 1), width=1)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AskedToSample(Question):
    mechanism: object
    kind = "toy.asked"
    answered_by = f"{__name__}:count_halves"

    def planned(self):
        return Plan(draws={"counts": self.mechanism})


class Sampled(AskedToSample):
    answered_by = f"{__name__}:count_sampled"


def values(rows):
    return np.concatenate([batch.X[:, 0] for batch in rows.batches()])


def count_halves(question, rows, draw):
    """Two cells; a value of exactly 1/2 counts five times."""
    X = values(rows)
    left = (X <= 0.5) + 4 * (X == 0.5)
    return {"counts": draw("counts", question.mechanism.place([left.sum(), (X > 0.5).sum()]))}


def count_sampled(question, rows, draw):
    """One secret row of all: whether it is above 1/2."""
    X = values(rows)[draw.noise.permutation(8)[:1]]
    return {"counts": draw("counts", question.mechanism.place([(X > 0.5).sum()]))}


def of(*numbers):
    return Sample.of(np.array(numbers, dtype=float)[:, None], schema=SCHEMA)


def test_a_secret_sample_is_never_taken_for_fixed(rehearsal):
    """Seven of eight rows are alike, so that few answers show that the sample changes."""
    claimed = PureDP(epsilon=1.0, relation="replace-one")
    question = Sampled(guarantee=claimed, mechanism=Laplace(sensitivity=1, scale=1.0))
    rows, neighbour = of(0.1, *[0.9] * 7), of(*[0.9] * 8)
    for _ in range(20):
        assert not AnswerSource.of(question, rows.rows(), neighbour.rows(), noise=rehearsal).at_once


def test_counts_are_drawn_many_at_once_and_fixed_samples_share_a_signature(rehearsal):
    claimed = PureDP(epsilon=1.0, relation="add/remove")
    question = AskedToSample(guarantee=claimed, mechanism=Laplace(sensitivity=1, scale=1.0))
    base = of(0.1, 0.9)
    alike = [
        AnswerSource.of(question, base.rows(), of(0.1, 0.9, x).rows(), noise=rehearsal) for x in (0.2, 0.3)
    ]
    other = AnswerSource.of(question, base.rows(), of(0.1, 0.9, 0.8, 0.8).rows(), noise=rehearsal)
    assert all(source.at_once for source in (*alike, other))
    assert alike[0].signature == alike[1].signature != other.signature
    drawn = alike[0].draw(50)
    assert [side.tolist() for side in drawn.exact] == [[1, 1], [2, 1]]
    assert drawn.first.shape == drawn.second.shape == (50, 2)


def test_an_answer_that_fails_is_an_outcome_without_numbers(rehearsal):
    def fails(question, rows, draw):
        raise ValueError("a row")

    globals()["fails"] = fails
    question = type("Failing", (AskedToSample,), {"answered_by": f"{__name__}:fails"})(
        guarantee=PureDP(epsilon=1.0, relation="add/remove"), mechanism=Laplace(sensitivity=1, scale=1.0)
    )
    found = sample_question(question, of(0.1).rows(), of(0.2).rows(), trials=40, noise=rehearsal)
    assert found.first.shape == (40, 0)


def test_outcomes_are_flat_sorted_by_name_and_padded_to_one_width():
    assert flat({"b": [[1, 2]], "a": 3}).tolist() == [3.0, 1.0, 2.0]
    assert not np.array_equal(flat({"a": "yes"}), flat({"a": "no"}))
    assert flat(None).size == 0
    found = Outcomes.of(np.zeros((40, 1)), np.zeros((40, 3)))
    assert np.isnan(found.first[:, 1:]).all()
    assert not np.isnan(found.second).any()


def test_outcomes_are_refused_where_they_are_few_or_unequal():
    for first, second in ((39, 39), (40, 41)):
        with pytest.raises(InputError, match="as many outcomes of both data sets, at least 40"):
            Outcomes.of(np.zeros(first), np.zeros(second))


def test_halves_share_no_outcome():
    early, late = Outcomes.of(np.arange(41.0), np.arange(41.0)).halves()
    assert early.first.ravel().tolist() == list(range(20))
    assert late.second.ravel().tolist() == list(range(20, 40))


def test_outcomes_can_be_rounded():
    found = Outcomes.of(np.full(40, 0.3), np.full(40, 0.2), resolution=0.25)
    assert set(found.first.ravel()) | set(found.second.ravel()) == {0.25}
