"""Who asks: bounded, printable, and nothing else."""

from dataclasses import FrozenInstanceError

import pytest

from privada.exceptions import InputError
from privada.privacy import Asker

KEY = "ab" * 32


def test_an_asker_is_a_frozen_value():
    asker = Asker("alice", KEY, project="stroke", purpose="triage")
    assert asker == Asker(learner="alice", key=KEY, project="stroke", purpose="triage")
    assert asker.to_dict() == {"learner": "alice", "key": KEY, "project": "stroke", "purpose": "triage"}
    with pytest.raises(FrozenInstanceError):
        asker.learner = "bob"


@pytest.mark.parametrize("bad", ["\x1b[2J", "a\nb", "a\u202eb", "\0", " a", "a ", "\ud800", 3, None])
@pytest.mark.parametrize("field", ["learner", "project", "purpose"])
def test_what_a_terminal_would_obey_is_no_name(field, bad):
    with pytest.raises(InputError, match=f"Expected {field}"):
        Asker(**({"learner": "alice", "key": KEY} | {field: bad}))


@pytest.mark.parametrize(("field", "longest"), [("learner", 100), ("project", 200), ("purpose", 1000)])
def test_every_text_has_a_largest_length(field, longest):
    told = {"learner": "alice", "key": KEY}
    Asker(**(told | {field: "x" * longest}))
    with pytest.raises(InputError, match=f"Expected {field} to be text of at most {longest} characters"):
        Asker(**(told | {field: "x" * (longest + 1)}))


def test_a_learner_has_a_name_and_a_key():
    with pytest.raises(InputError, match="Expected learner"):
        Asker("", KEY)
    with pytest.raises(InputError, match="Expected key to be a public key"):
        Asker("alice", "no key")
