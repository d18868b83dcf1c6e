"""What a learner would train, tried on public rows with made-up labels before anything is charged.

Once an answer is paid for, a model that cannot be fitted would have cost the budget for nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError

TRIED = 100  # public rows that a trial fits


def check_kind(model: Any, kind: str, *, such_as: str) -> None:
    """Refuse what is not a "classifier" or "regressor" of scikit-learn's manners that takes weights."""
    from sklearn.base import is_classifier, is_regressor
    from sklearn.utils.validation import has_fit_parameter

    fits = hasattr(model, "fit") and hasattr(model, "get_params")
    of_kind = {"classifier": is_classifier, "regressor": is_regressor}[kind]
    if isinstance(model, type) or not fits or not of_kind(model):
        raise InputError(f"Expected {kind} to be a scikit-learn {kind}, got {_short(model)}.")
    if not has_fit_parameter(model, "sample_weight"):
        raise InputError(
            f"Expected {kind} to take sample_weight in fit, which {type(model).__name__} does not: "
            "public rows are weighted. They come standardised, so give a pipeline's last step alone, "
            f"or a {kind} that takes weights, such as {such_as}."
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def evenly(source: FloatArray, most: int = TRIED) -> FloatArray:
    """At most so many rows, from the first to the last."""
    return source[np.linspace(0, len(source) - 1, min(len(source), most)).astype(np.int64)]


def tried(
    model: Any, kind: str, standard: FloatArray, labels: Callable[[IntArray, int], npt.NDArray[Any]]
) -> Any:
    """The model, fitted to standardised rows, or an `InputError` that says what it said.

    Parameters
    ----------
    labels : function of ranks and their number
        What is made up for rows, by their order along a line.
    """
    from sklearn.base import clone

    rows, count = standard.astype(np.float32), len(standard)
    along = rows @ np.random.default_rng(0).normal(size=rows.shape[1])
    made_up = labels(np.argsort(np.argsort(along, kind="stable")), count)
    trial = clone(model)
    if trial.get_params(deep=False).get("random_state", 0) is None:
        trial.set_params(random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial.fit(rows, made_up, sample_weight=np.ones(count, dtype=np.float32))
            trial.predict(rows)
    except Exception as error:  # whatever a foreign model raises, nothing was charged yet
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(
            f"Expected a {kind} that fits standardised public rows with made-up labels; "
            f"{type(model).__name__} says: {reason}"
        ) from None
    return trial


__all__ = ["TRIED", "check_kind", "evenly", "tried"]
