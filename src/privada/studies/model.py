"""The model that a study learns, as a fitted estimator, which can be saved like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privada.exceptions import InputError
from privada.methods.registry import load, methods
from privada.studies.study import Study


def model_maker(study: Study) -> Callable[[Any], Any]:
    """The function that turns what a study's learner returns into a fitted estimator.

    Raises
    ------
    InputError
        The study learns no model: known before anything is charged.
    """
    path = study.method.model_path
    if path is None:
        able = ", ".join(name for name, each in methods().items() if each.model_path is not None)
        raise InputError(f"A study of {study.method.name} learns no model; studies of {able} do.")
    asks = study.inquiry.asks
    return load(path)(
        [ask.question for ask in asks], schema=study.schemas[asks[0].owner], guarantee=study.guarantee
    )


__all__ = ["model_maker"]
