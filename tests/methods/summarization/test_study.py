"""Summarization in a declarative study: public sizes, one consumer, and no file overwritten."""

import pytest

from privada._toml import Section
from privada.exceptions import StudyError
from privada.methods.summarization.method import Summarization
from privada.parties import Schema
from privada.privacy import ApproxDP

GUARANTEE = ApproxDP(epsilon=2.0, delta=1e-4, relation="replace-one")
TABLE = 'consumer = "hospital"\nsize = 30\ngamma = 0.5\nn_features = 20\n'


def schema(size=100, width=2):
    return Schema.of_numbers(bounds=(-4, 4), width=width, size=size)


def made(text, home, *, seed=0, **schemas):
    section = Section.parse(f"[method]\n{text}", name="study.toml").section("method")
    known = schemas or {"hospital": schema(), "east": schema(), "west": schema()}
    return Summarization.inquire(section, schemas=known, guarantee=GUARANTEE, home=home, seed=seed)


def test_everybody_is_asked_and_another_seed_asks_anew(tmp_path):
    asks, others = (made(TABLE, tmp_path, seed=seed).asks for seed in (0, 1))
    assert {ask.owner for ask in asks} == {"hospital", "east", "west"}
    assert not {ask.question.digest for ask in asks} & {ask.question.digest for ask in others}
    assert not list(tmp_path.iterdir())


def test_the_validation_set_may_have_a_budget_of_its_own(tmp_path):
    own = TABLE + "validation_epsilon = 1.5\nvalidation_delta = 1e-5\n"
    asks = made(own, tmp_path).asks
    said = {ask.owner: ask.question.guarantee for ask in asks}
    assert said["east"].epsilon <= 2.0
    assert said["hospital"] != said["east"]


def test_rounds_are_planned_whole_and_never_asked_twice_under_one_name(tmp_path):
    text = TABLE + 'algorithm = "rounds"\nbatch = 5\n'
    first, again = (made(text, tmp_path).asks for _ in range(2))
    rows = ["summarization.bids", "summarization.points"]  # refused now rather than after the charge
    kinds = ["summarization.sum", *["summarization.participation"] * 2, *rows * 2]
    assert [ask.question.kind for ask in first] == kinds
    assert {ask.owner for ask in first} == {"hospital", "east", "west"}
    assert first[1].question.guarantee == GUARANTEE
    assert not {ask.question.digest for ask in first} & {ask.question.digest for ask in again}, (
        "a second start pays again: fresh noise on the same sums"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE + "batch = 5", r'method\.batch: Expected no batch without "rounds"'),
        (TABLE + 'algorithm = "rounds"\nask_share = 1.5', r"method\.ask_share"),
        (TABLE.replace("30", "300"), r"method\.size: Expected size to be at most 200, all rows"),
        (TABLE.replace("0.5", "-1"), r"method\.gamma"),
        (TABLE + "extra = 1", r"line 6, method\.extra: nobody knows this key"),
        (
            TABLE + "validation_delta = 0.1",
            r"method\.validation_delta: .*exactly one of epsilon and rho",
        ),
        (TABLE + 'summary = "there.npz"', r"method\.summary: .*there\.npz is there already"),
    ],
)
def test_mistakes_are_named(text, message, tmp_path):
    (tmp_path / "there.npz").write_bytes(b"")
    with pytest.raises(StudyError, match=message):
        made(text, tmp_path)
    assert (tmp_path / "there.npz").read_bytes() == b""


@pytest.mark.parametrize(
    ("schemas", "message"),
    [
        ({"hospital": schema(), "east": schema(size=None)}, "the schema of east has none"),
        ({"hospital": schema(), "east": schema(width=3)}, "different numbers of features"),
        ({"hospital": schema()}, "at least one owner beside the consumer"),
    ],
)
def test_owners_that_cannot_be_summarised_are_refused(schemas, message, tmp_path):
    with pytest.raises(StudyError, match=message):
        made(TABLE, tmp_path, **schemas)


def test_rounds_as_0_2_said_them(tmp_path):
    with pytest.warns(DeprecationWarning, match="rounds= is now algorithm="):
        asks = made(TABLE + "rounds = true\n", tmp_path).asks
    assert "summarization.participation" in [ask.question.kind for ask in asks]
    with pytest.warns(DeprecationWarning, match="rounds= is now algorithm="):
        asks = made(TABLE + "rounds = false\n", tmp_path).asks
    assert "summarization.near" in [ask.question.kind for ask in asks]


def test_a_study_may_ask_some_of_its_owners(tmp_path):
    asks = made(TABLE + 'owners = ["hospital", "east"]\n', tmp_path).asks
    assert {ask.owner for ask in asks} == {"hospital", "east"}
