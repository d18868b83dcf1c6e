"""The model that a study learns, as a fitted estimator, which can be saved like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privada.studies.study import Study


def model_maker(study: Study) -> Callable[[Any], Any]:
    """The function that turns what a study's learner returns into a fitted estimator.

    Raises
    ------
    InputError
        The study learns no model: known before anything is charged.
    """
    schema = study.schemas[study.inquiry.asks[0].owner]
    return study.method.make_estimator(study.inquiry, schema=schema, guarantee=study.guarantee)


__all__ = ["model_maker"]
