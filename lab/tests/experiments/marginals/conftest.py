"""Small sets."""

import pytest

from privada_lab.datasets.hidden_target import hidden_target
from privada_lab.experiments.marginals import contenders, headline, sets


@pytest.fixture
def small(monkeypatch):
    """Small sets and short training: what is tested is the bookkeeping."""
    monkeypatch.setattr(
        sets,
        "hidden_target",
        lambda name, seed: hidden_target(name, seed=seed, source_size=150, target_size=200),
    )
    monkeypatch.setattr(contenders, "STEPS", {2: 2, 4: 2})
    monkeypatch.setattr(headline, "GENERATED", (sets.GENERATED[0], sets.GENERATED[2]))
