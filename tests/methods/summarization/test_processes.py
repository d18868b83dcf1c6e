"""What goes through the pipe says whether rows were open when an answer failed."""

import io
import json

import numpy as np

from privada.methods.summarization import EmbeddingSum, RoundPoints, SummaryRows
from privada.methods.summarization.processes import _receive, _send, serve


def exchange(owner, question, to="curator"):
    asked, replies = io.BytesIO(), io.BytesIO()
    _send(asked, json.dumps({"to": to}).encode() + b"\n" + question.to_bytes())
    asked.seek(0)
    serve(owner, asked, replies)
    replies.seek(0)
    kind, _, rest = _receive(replies).partition(b"\n")
    return kind.decode(), rest


def test_refusals_and_failures_are_told_apart(made_owner, matching):
    rng = np.random.default_rng(0)
    owner = made_owner(rng.normal(size=(30, 2)), name="o", seed=1)
    rows = SummaryRows(embedding=matching.embedding, target=np.zeros(40), size=3, guarantee=matching.owners)
    assert exchange(owner, rows)[0] == "disclosure"
    assert (
        exchange(owner, EmbeddingSum(embedding=matching.embedding, guarantee=matching.owners))[0] == "release"
    )
    kind, said = exchange(owner, rows, to="mallory")
    assert kind == "refused"
    assert b"mallory" in said
    kind, said = exchange(owner, RoundPoints(index=[10**6], guarantee=matching.owners))
    assert kind == "failed"
    assert b"1000000" not in said
