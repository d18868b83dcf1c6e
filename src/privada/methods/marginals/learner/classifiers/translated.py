"""Classifiers on the wire: translated, compared with themselves on public rows, or refused by name.

A classifier becomes our own form only if its decision is the largest of linear scores, or of a network's, and
only if that form labels public rows as the classifier does. What cannot travel is found out before anything
is charged: `check_classifier` fits it to public rows with made-up public labels and sends it nowhere.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.exceptions import AnswerError, InputError
from privada.methods.hypotheses.forms import (
    Constant,
    Hypothesis,
    Network,
)
from privada.methods.marginals.learner.classifiers.trial import TRIED, check_kind, evenly, tried

ABSENT = -1e300  # score of a class that a classifier has not met
SAME = 0.95  # share of public rows on which our own form must say what the classifier says
NEARLY = 0.9  # of ONNX, which compares in single precision and may break ties of votes otherwise
SHOWN = 64  # public rows on which ONNX is compared

Layers = list[tuple[FloatArray, FloatArray]]


def of_classifier(
    model: Any,
    *,
    mean: FloatArray,
    scale: FloatArray,
    n_classes: int | None = None,
    rows: FloatArray | None = None,
) -> Hypothesis:
    """The wire form of a classifier that was fitted on ``(X - mean) / scale`` with class codes as labels.

    One class alone, linear models and scikit-learn's networks become our own form; any other, torch modules
    too, becomes ONNX. Raises `InputError` for what has neither form.

    Parameters
    ----------
    n_classes : int, optional
        Of the schema; by default as many as the largest code the classifier knows says. A class that it
        has not met is never said.
    rows : array, optional
        Public rows on which the wire form is compared with the classifier; by default some are made up.
    """
    from privada.methods.marginals.learner.classifiers.torch_module import is_module, of_module

    if is_module(model):
        return of_module(model, mean=mean, scale=scale)
    if len(model.classes_) == 1:
        return Constant(code=int(model.classes_[0]))
    shown = _some(rows, mean, scale)
    said = np.asarray(model.predict((shown - mean) / scale))
    layers = _layers(model, (shown - mean) / scale)
    if layers is not None:
        known = np.asarray(model.classes_, dtype=np.int64)
        if n_classes is not None and known[-1] >= n_classes:
            raise InputError(f"Expected class codes below {n_classes}, got a classifier of {known.tolist()}.")
        weights, bias = layers[0]
        first = weights / scale[:, None]
        layers[0] = (first, bias - mean @ first)
        layers[-1] = _widened(*layers[-1], known, int(known[-1]) + 1 if n_classes is None else n_classes)
        made = Network(layers=tuple(layers), activation=getattr(model, "activation", "relu"))
        if np.mean(made.codes(shown) == said) >= SAME:
            return made
    return _exported(model, shown[:SHOWN], said[:SHOWN], mean=mean, scale=scale)


def _some(rows: FloatArray | None, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Public rows, mixed, and some that are made up around them."""
    rng = np.random.default_rng(0)
    made = rng.normal(mean, 2 * np.abs(scale), size=(SHOWN, len(mean)))
    if rows is None:
        return made
    return np.vstack([rows[rng.permutation(len(rows))[: 4 * SHOWN]], made])


def _layers(model: Any, standard: FloatArray) -> Layers | None:
    """Layers of a model whose largest score, or its one score's sign, is its class; None for any other."""
    known = np.asarray(model.classes_)
    if known.dtype.kind not in "iufb" or known[0] < 0 or not np.array_equal(known, np.round(known)):
        return None
    if hasattr(model, "coefs_") and getattr(model, "activation", "") in {"relu", "tanh"}:
        return list(zip(model.coefs_, model.intercepts_, strict=True))
    if not (hasattr(model, "coef_") and hasattr(model, "decision_function")):
        return None
    coef = np.atleast_2d(np.asarray(model.coef_))
    columns = 1 if len(known) == 2 else len(known)
    if coef.shape != (columns, standard.shape[1]) or np.size(model.intercept_) not in {1, columns}:
        return None
    bias = np.broadcast_to(np.atleast_1d(model.intercept_), (columns,))
    scores = np.reshape(model.decision_function(standard), (len(standard), -1))
    linear = standard @ coef.T + bias
    if linear.shape != scores.shape or np.abs(linear - scores).max() > 1e-3 * np.abs(scores).max():
        return None  # such as votes of pairs of classes
    return [(coef.T, bias)]


def _widened(
    weights: FloatArray, bias: FloatArray, known: IntArray, n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """A last layer with a column for each class: classes that are not known score lowest."""
    if len(known) == n_classes:
        return weights, bias
    if weights.shape[1] == 1:
        weights, bias = np.hstack([np.zeros_like(weights), weights]), np.concatenate([[0.0], bias])
    wide, low = np.zeros((len(weights), n_classes)), np.full(n_classes, ABSENT)
    wide[:, known], low[known] = weights, bias
    return wide, low


def _exported(
    model: Any, rows: FloatArray, said: npt.NDArray[Any], *, mean: FloatArray, scale: FloatArray
) -> Hypothesis:
    """The classifier as ONNX, if that says what the classifier says."""
    from privada.methods.hypotheses.onnx import of_model

    name = type(model).__name__
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = of_model(model, mean=mean, scale=scale)
        agreed = float(np.mean(made.codes(rows) == said))
    except (InputError, AnswerError) as error:
        raise InputError(f"{name} cannot travel to an owner: {error}") from None
    except Exception as error:  # its converters share no class of errors
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{name} cannot travel to an owner, it does not export to ONNX: {reason}") from None
    if agreed < NEARLY:
        raise InputError(
            f"{name} cannot travel to an owner: as ONNX it agrees with itself on {agreed:.0%} of public rows."
        )
    return made


def check_classifier(
    classifier: Any, source: FloatArray, *, mean: FloatArray, scale: FloatArray, n_classes: int, travels: bool
) -> None:
    """Refuse what could not be trained on weighted public rows, or not travel if it must, by a trial."""
    check_kind(classifier, "classifier", such_as="LogisticRegression()")
    if len(source) < 2:
        return  # one row has one label, and that is a constant hypothesis
    standard = (evenly(source, max(TRIED, 20 * n_classes)) - mean) / scale
    model = tried(classifier, "classifier", standard, lambda rank, count: rank * n_classes // count)
    if travels:
        try:
            made = of_classifier(model, mean=mean, scale=scale, n_classes=n_classes, rows=source)
            made.fits(source.shape[1], n_classes)
        except InputError as error:
            raise InputError(f"Expected a classifier that rounds can submit. {error}") from None


__all__ = ["check_classifier", "of_classifier"]
