"""Losses of linear models, reduced over the private weights, and how far one record can pull.

The loss of a record enters the reduced objective as ``l`` up to the threshold κ₁ and as ``2√(κ₁ l) - κ₁``
beyond, so its gradient is that of the loss times ``min(1, √(κ₁/l))``: the *pull* ψ times the features.

* squared (halved: ``(f - y)²/2``): ψ is the residual clipped to ``±c``, ``c = √κ₁``: a Huber loss.
* logistic: ``|ψ| = min(1, √(κ₁/l)) (1 - e^-l)``. The second factor grows in l, ``(1 - e^-l)/√l`` falls
  beyond l* = 1.2564 (where ``1 + 2l = e^l``); hence ``|ψ| <= 1 - e^-κ₁`` if ``κ₁ >= l*`` and ``0.6382 √κ₁``
  otherwise.
* softmax: ``|p - onehot|₂ <= √2 (1 - p_y) = √2 (1 - e^-l)``, so √2 times the logistic bound.

The reduced logistic losses are not convex; nothing in a privacy proof needs that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError

LOSSES = ("logistic", "softmax", "squared")
_PEAK = 1.2564312086261697  # 1 + 2l = e^l
_HEIGHT = 0.638172686338952  # (1 - e^-l)/√l there, rounded up


def largest_pull(loss: str, threshold: float) -> float:
    """Bound c on |ψ|; the threshold is √κ₁ for squared loss and κ₁ otherwise.

    >>> largest_pull("squared", 0.1)
    0.1
    >>> round(largest_pull("logistic", 0.25), 4), round(largest_pull("softmax", 3.0), 4)
    (0.3191, 1.3438)
    """
    _check.positive(threshold=threshold)
    if _check.one_of(LOSSES, loss=loss) == "squared":
        return float(threshold)
    logistic = -math.expm1(-threshold) if threshold >= _PEAK else _HEIGHT * math.sqrt(threshold)
    return logistic * (math.sqrt(2) if loss == "softmax" else 1.0)


def pull(loss: str, scores: FloatArray, y: npt.NDArray[Any], threshold: float | FloatArray) -> FloatArray:
    """ψ of every record, shape (rows, outputs); the threshold is one number, or one for each record."""
    if loss == "squared":
        most = np.broadcast_to(threshold, len(scores))[:, None]
        return np.clip(scores - np.asarray(y, dtype=np.float64)[:, None], -most, most)
    push = probabilities(loss, scores)
    if loss == "logistic":
        push[:, 0] -= y
    else:
        push[np.arange(len(y)), np.asarray(y, dtype=np.int64)] -= 1
    beyond = np.maximum(values(loss, scores, y), threshold)  # a loss of 0 pulls with its whole push, of 0
    return np.asarray(push * np.sqrt(threshold / beyond)[:, None])


def values(loss: str, scores: FloatArray, y: npt.NDArray[Any]) -> FloatArray:
    """Loss of every record, not reduced; the squared one is not halved."""
    if loss == "squared":
        return np.asarray((scores[:, 0] - np.asarray(y, dtype=np.float64)) ** 2)
    if loss == "logistic":
        signed = np.where(np.asarray(y) == 1, scores[:, 0], -scores[:, 0])
        return np.asarray(np.logaddexp(0.0, -signed))
    from scipy.special import logsumexp

    rows = np.arange(len(y))
    return np.asarray(logsumexp(scores, axis=1) - scores[rows, np.asarray(y, dtype=np.int64)])


def clipped(loss: str, scores: FloatArray, y: npt.NDArray[Any], most: float) -> FloatArray:
    """Loss of every record, not reduced, and ``most`` at most: of scores that overflow, ``most``.

    >>> clipped("squared", np.array([[1.0], [3.0], [np.nan]]), np.zeros(3), 4.0).tolist()
    [1.0, 4.0, 4.0]
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.fmin(values(loss, scores, y), most))


def probabilities(loss: str, scores: FloatArray) -> FloatArray:
    """Class probabilities: of the second class (logistic), or of all."""
    from scipy.special import expit, softmax

    if loss == "logistic":
        return np.asarray(expit(scores))
    return np.asarray(softmax(scores, axis=1))


def outputs(loss: str, n_classes: int) -> int:
    """Number of outputs of a linear model; 0 classes mean a number."""
    if loss == "squared":
        if n_classes:
            raise InputError("Squared loss is for a numeric label; the schema's label has classes.")
        return 1
    if n_classes < 2 or (loss == "logistic" and n_classes != 2):
        raise InputError(f"Expected a label of {'2' if loss == 'logistic' else '2 or more'} classes.")
    return 1 if loss == "logistic" else n_classes


__all__ = ["LOSSES", "clipped", "largest_pull", "outputs", "probabilities", "pull", "values"]
