"""Fitted models of this process as hypotheses that an owner in the same process runs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Hypothesis

SECONDS = 1e-2  # for one record, from above
_KEPT: dict[str, tuple[Any, tuple[Any, ...]]] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptModel(Hypothesis):
    """A model that this process keeps under a name; it means nothing in any other.

    Privacy
    -------
    Rows are predicted one by one, so that the class of a record is a function of that record alone: in a
    matrix product of many rows, rounding could depend on others.
    """

    name: str
    form: ClassVar[str] = "kept"

    def codes(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        model, classes = _find(self.name)
        codes = {name: code for code, name in enumerate(classes)}
        return np.array([codes.get(model.predict(row[None])[0], -1) for row in X], dtype=np.int64)

    def fits(self, width: int, n_classes: int) -> None:
        """Try it on one public row."""
        _, classes = _find(self.name)
        if len(classes) != n_classes:
            raise InputError(f"Expected a model of {n_classes} classes, got one of {len(classes)}.")
        self.codes(np.zeros((1, width)))

    def seconds(self, width: int) -> float:  # noqa: ARG002
        return SECONDS


def _find(name: str) -> tuple[Any, tuple[Any, ...]]:
    if name not in _KEPT:
        raise InputError("This model is kept by another process, or no longer; nothing was charged.")
    return _KEPT[name]


@contextmanager
def keeping(models: Sequence[Any], classes: Sequence[Any]) -> Iterator[tuple[KeptModel, ...]]:
    """Keep fitted models for the time of one question."""
    names = [f"{type(model).__name__}-{uuid.uuid4().hex}" for model in models]
    _KEPT.update({name: (model, tuple(classes)) for name, model in zip(names, models, strict=True)})
    try:
        yield tuple(KeptModel(name=name) for name in names)
    finally:
        for name in names:
            _KEPT.pop(name, None)


__all__ = ["KeptModel", "keeping"]
