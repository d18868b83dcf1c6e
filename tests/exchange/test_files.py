"""Files as they were saved, and as they are in an exchange folder."""

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, Mailbox, NearestCells
from privada.exceptions import PrivadaError, WireError
from privada.exchange import Sender
from privada.exchange.files import load_question, read_payload
from privada.methods.summarization import RoundPoints
from privada.privacy import OwnerKey, PureDP
from privada.privacy.keys import LearnerKey


def question(cells):
    centers = np.linspace(0, 1, cells)[:, None]
    return CellStatistics(
        tables=(NearestCells(centers=centers),), guarantee=PureDP(epsilon=0.4, relation="add/remove")
    )


@pytest.mark.parametrize("cells", [2, 200_000])
def test_a_question_is_read_from_either_form(tmp_path, cells):
    asked = question(cells)
    assert load_question(asked.save(tmp_path / "saved.question")) == asked
    key = Mailbox.open(tmp_path / "exchange").ask(AskOwner("clinic", asked))
    assert load_question(tmp_path / "exchange" / key) == asked
    assert (tmp_path / "exchange/questions/clinic/parts").exists() == (cells > 2)


def test_a_changed_file_is_refused(tmp_path):
    key = Mailbox.open(tmp_path).ask(AskOwner("clinic", question(2)))
    blob = (tmp_path / key).read_bytes()
    (tmp_path / key).write_bytes(blob[:-1] + b"x")
    with pytest.raises(PrivadaError, match="not what its envelope says"):
        read_payload(tmp_path / key)


def test_a_sealed_question_says_who_can_read_it(tmp_path):
    curator, clinic = LearnerKey.generate(), OwnerKey.generate()
    sender = Sender(learner="curator", key=curator)
    asking = Mailbox.open(tmp_path, keys={"clinic": clinic.public}, sender=sender)
    points = RoundPoints(index=[1], guarantee=PureDP(epsilon=0.4, relation="replace-one"))
    key = asking.ask(AskOwner("clinic", points, to="curator"))
    with pytest.raises(WireError, match="is sealed: only the owner that it is for can read it"):
        load_question(tmp_path / key)
