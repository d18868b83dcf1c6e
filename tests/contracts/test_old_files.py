"""Question files that version 0.2 wrote are read as the same questions, or refused in one sentence.

The archive has the file of every example question of that version; a file's name ends with its digest.
"""

import zipfile
from pathlib import Path

import pytest

from privada import Owner
from privada.exceptions import InputError, WireError
from privada.methods.method import methods
from privada.privacy.release import Question

ARCHIVE = Path(__file__).parent / "questions-0.2.zip"
# kinds that no method answers any more; the changelog says what to ask instead
GONE = {"marginals.features", "reweighting.portrait"}


def names():
    with zipfile.ZipFile(ARCHIVE) as archive:
        return archive.namelist()


@pytest.mark.parametrize("name", names(), ids=lambda name: name[:-75])
def test_an_old_file_is_the_same_question_or_refused(name):
    with zipfile.ZipFile(ARCHIVE) as archive:
        blob = archive.read(name)
    *kind, _, digest, _ = name.split(".")
    if ".".join(kind) in GONE:
        with pytest.raises(WireError, match="No installed method answers questions of kind"):
            Question.from_bytes(blob)
        return
    question = Question.from_bytes(blob)
    assert question.digest == digest == Question.peek(blob).digest
    assert question.to_bytes() == blob


RETIRED = {question.kind: question for card in methods().values() for question in card.retired_questions()}


@pytest.mark.parametrize(
    "name", [name for name in names() if name.split(".0.")[0].split(".1.")[0] in RETIRED]
)
def test_a_retired_kind_is_read_and_refused_with_the_kind_that_replaces_it(name):
    with zipfile.ZipFile(ARCHIVE) as archive:
        question = Question.from_bytes(archive.read(name))
    case = methods()[question.method].example()
    owner = Owner(**case.data, schema=case.schema, dataset="rows", budget=question.guarantee)
    with pytest.raises(
        InputError, match=f"{question.kind} are no longer answered; ask for {question.replaced_by} instead"
    ):
        owner.answer(question)
    assert owner.ledger.spent("rows") is None


def test_every_retired_kind_names_one_that_is_answered():
    descents = {"marginals.descent", "reweighting.descent", "transport.descent"}
    assert RETIRED.keys() == {*descents, "reweighting.selection"}
    answered = {question.kind for card in methods().values() for question in card.questions()}
    assert answered >= {question.replaced_by for question in RETIRED.values()}
    assert not answered & RETIRED.keys()


def test_kinds_that_are_gone_are_not_answered():
    assert not GONE & {question.kind for card in methods().values() for question in card.questions()}
