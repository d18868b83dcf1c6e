"""A library that is missing is named, with its extra, before anything is charged."""

from __future__ import annotations

import numpy as np
import pytest

from privada import Category, Owner, PureDP, Schema
from privada import _extras as extras
from privada.exceptions import InputError
from privada.methods.marginals import Onnx, OutcomeTables
from privada.methods.marginals.example import TABLES
from privada.methods.transport import private_wasserstein

PURE = PureDP(epsilon=1, relation="add/remove")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing but what is installed by default."""
    monkeypatch.setattr(extras, "find_spec", lambda _: None)


def test_what_is_there_is_accepted() -> None:
    extras.require("onnx", "numpy", purpose="A test")


def test_names_all_that_is_missing(bare: None) -> None:
    with pytest.raises(InputError, match=r"^A test needs this and that: pip install 'privada\[some\]'\.$"):
        extras.require("some", "this", "that", purpose="A test")


def test_an_owner_without_onnx_refuses_before_it_charges(bare: None) -> None:
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Category(name="label", values=(0, 1)))
    rows, labels = np.random.default_rng(0).uniform(size=(20, 2)), np.arange(20) % 2
    owner = Owner(rows, y=labels, schema=schema, dataset="rows", budget=PURE)
    model = np.frombuffer(b"a model that nobody has tried yet", dtype=np.uint8)
    with pytest.raises(InputError, match=r"needs onnx and onnxruntime: pip install 'privada\[onnx\]'"):
        owner.answer(OutcomeTables(tables=TABLES, hypothesis=Onnx(model=model), guarantee=PURE))
    assert len(list(owner.ledger.lines("rows"))) == 1  # the budget's own line


def test_a_distance_without_pot_asks_nothing(bare: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(Owner, "answer", lambda *_, **__: asked.append(1))
    rows = np.random.default_rng(0).uniform(size=(50, 2))
    with pytest.raises(InputError, match=r"needs ot: pip install 'privada\[transport\]'"):
        private_wasserstein(rows, rows[:20], epsilon=1.0, delta=1e-5, bounds=(0.0, 1.0), norm_bound=1.0)
    assert asked == []
