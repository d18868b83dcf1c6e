"""A summary at the curator's: training, files, values, and what reports say."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from privada import CellClassifier, run
from privada.exceptions import InputError
from privada.methods.summarization import summarise


def drive(consumer, owners, matching):
    nodes = {node.name: node.owner for node in (consumer, *owners)}
    sizes = {node.name: node.size for node in owners}
    return run(summarise(consumer.name, consumer.size, sizes, matching), nodes)


def test_a_summary_trains_saves_and_tells_values(town, matching, tmp_path):
    summary = drive(*town(), matching)
    model = summary.train(LogisticRegression())
    assert model.score(summary.X, summary.y) > 0.8
    centers = [[1.5, 0.5], [0.5, 1.5], [-0.5, -1.5], [-1.5, -0.5]]
    private = CellClassifier(centers=centers, classes=(0, 1), bounds=(-4, 4), epsilon=50)
    assert summary.train(private).score(summary.X, summary.y) > 0.6
    file = summary.save(tmp_path / "summary.npz")
    with np.load(file) as held:
        assert np.array_equal(held["X"], summary.X)
    with pytest.raises(InputError, match="there already"):
        summary.save(file)
    values = summary.contributions()
    assert values["near"] > values["far"]
    plain = summary.to_dict()
    assert "raw rows at the curator: not differentially private" in plain["stamps"]
    assert plain["points"] == 40
    assert plain["against"] == "any coalition of owners"


def test_a_less_trusted_curator_gets_embeddings_only(town, matching):
    from dataclasses import replace

    summary = drive(*town(), replace(matching, embedded=True))
    assert summary.X.shape == (40, matching.embedding.dimension)
    assert "embeddings at the curator: not differentially private" in summary.to_dict()["stamps"]
    assert summary.train(LogisticRegression()).score(summary.X, summary.y) > 0.7
    assert sum(summary.contributions().values()) > 0
