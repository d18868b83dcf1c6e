"""Question files that version 0.2 wrote are read as the same questions, or refused in one sentence.

The archive has the file of every example question of that version; a file's name ends with its digest.
"""

import zipfile
from pathlib import Path

import pytest

from privada.exceptions import WireError
from privada.methods.registry import methods
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


def test_kinds_that_are_gone_are_not_answered():
    assert not GONE & {question.kind for card in methods().values() for question in card.questions()}
