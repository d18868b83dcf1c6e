"""An envelope is whole, canonical and signed, or it is refused before anything behind it is read."""

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from privada.exceptions import InputError, PrivadaError, TamperError, WireError
from privada.exchange.envelope import LARGEST_STATEMENT, Envelope, clean
from privada.privacy import OwnerKey
from privada.privacy.keys import LearnerKey

ALICE, CLINIC = LearnerKey.generate(), OwnerKey.generate()


def asked(**more):
    fields = {"owner": "clinic", "question": "ab" * 32, "learner": "alice", "learner_key": ALICE.public}
    return Envelope(kind="question", **(fields | more))


def test_what_was_signed_is_read_again():
    signed = asked(purpose="für die Triage").sign(ALICE)
    read, rest = Envelope.split(signed.to_bytes() + b"the question\n\n")
    assert (read, rest) == (signed, b"the question\n\n")


def test_the_bytes_are_those_of_rfc_8785():
    line = asked().sign(ALICE).to_bytes()
    assert line == rfc8785.dumps(json.loads(line)) + b"\n"


def test_the_identity_does_not_depend_on_when_or_how_it_travels():
    plain = asked()
    assert plain.is_same(asked(time="2031-01-01", part_size=4, parts=("00" * 32,), place="x").sign(ALICE))
    assert not plain.is_same(asked(purpose="other"))
    assert not plain.is_same(asked(learner_key=LearnerKey.generate().public))


@pytest.mark.parametrize("kind", ["release", "disclosure", "refusal", "failure"])
def test_a_signed_statement_never_passes_for_one_of_another_kind(kind):
    release = Envelope(kind="release", owner="clinic", owner_key=CLINIC.public, question="ab" * 32)
    signed = json.loads(release.sign(CLINIC).to_bytes())
    signed["statement"]["kind"] = kind
    line = rfc8785.dumps(signed) + b"\n"
    if kind == "release":
        Envelope.split(line)
        return
    with pytest.raises(TamperError):
        Envelope.split(line)


def test_an_unsigned_question_passes_and_an_unsigned_answer_does_not():
    Envelope.split(asked(learner="", learner_key="").sign(None).to_bytes())
    with pytest.raises(WireError, match="names no learner"):
        Envelope.split(asked(learner_key="").sign(None).to_bytes())
    with pytest.raises(TamperError):
        Envelope.split(Envelope(kind="release", owner="clinic", question="ab" * 32).to_bytes())


def test_the_key_of_another_is_found():
    with pytest.raises(TamperError):
        Envelope.split(asked().sign(LearnerKey.generate()).to_bytes())


def broken():
    line = asked().sign(ALICE).to_bytes()
    whole = json.loads(line)
    yield b""
    yield b"junk\n"
    yield b"[]\n"
    yield b'{"a":' * 5000 + b"\n"
    yield b" " * (LARGEST_STATEMENT + 10) + line
    yield b" " + line
    yield line[:-1]
    yield json.dumps(whole).encode() + b"\n"
    for name, value in [
        ("size", -1),
        ("size", 2**40),
        ("size", True),
        ("size", 1.0),
        ("sha256", "AB" * 32),
        ("parts", ["x"]),
        ("parts", ["00" * 32] * 5000),
        ("kind", "question\n"),
        ("purpose", "x" * 5000),
        ("purpose", "\x1b[2J"),
        ("learner", None),
        ("extra", "field"),
    ]:
        yield rfc8785.dumps(whole | {"statement": whole["statement"] | {name: value}}) + b"\n"
    yield rfc8785.dumps(whole | {"format": 2}) + b"\n"
    yield rfc8785.dumps(whole | {"signature": None}) + b"\n"
    yield line.replace(b'"owner":"clinic"', b'"owner":"clinic","owner":"clinic"')


@pytest.mark.parametrize("item", [*broken()], ids=range(23))
def test_broken_envelopes_are_refused_in_one_sentence(item):
    with pytest.raises(PrivadaError) as refused:
        Envelope.split(item)
    assert len(str(refused.value)) < 200


def test_reasons_are_one_bounded_line():
    assert clean("a\x1b[2J\nb") == "a\\x1b[2J\\nb"
    assert len(clean("x" * 100_000)) <= 1000


def test_the_line_is_in_the_canonical_form_of_rfc_8785():
    """Whatever texts it holds: other programs verify it."""
    made = Envelope(kind="question", owner="clinic", question="0" * 64, project="é \u20ac", purpose='"x"\\')
    line = made.to_bytes()
    assert rfc8785.dumps(json.loads(line)) + b"\n" == line
    assert json.loads(line)["statement"]["project"] == "é \u20ac"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**53 - 1))
def test_every_text_and_size_is_written_as_rfc_8785_says(text, size):
    made = asked(purpose=text, reason=text[::-1], size=size, parts=("cd" * 32,))
    line = made.to_bytes()
    assert line == rfc8785.dumps(json.loads(line)) + b"\n"


def test_half_a_character_is_refused_by_name():
    with pytest.raises(InputError, match="can be written as JSON"):
        asked(purpose="\ud800").to_bytes()
