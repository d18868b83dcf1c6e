"""The points that a noisy descent passed through, from released sums, and their noise. Post-processing."""

from __future__ import annotations

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions.descent import LinearDescent
from privada.parties.protocol import only_releases
from privada.privacy.mechanism import Gaussian
from privada.privacy.release import Release


def trajectory(question: LinearDescent, release: Release) -> list[FloatArray]:
    """The iterates that the released gradients make."""
    only_releases(release)
    path: list[FloatArray] = []
    V, velocity = question.start()
    for name in question.names():
        V, velocity = question.go_on(V, velocity, release[name])
        path.append(V)
    return path


def averaged(question: LinearDescent, release: Release) -> FloatArray:
    """Mean of the second half of the path."""
    path = trajectory(question, release)
    return np.asarray(np.mean(path[len(path) // 2 :], axis=0))


def noise_of_average(question: LinearDescent, *, pull: float) -> float:
    """Standard deviation of the noise on each coordinate of `averaged`.

    ``pull`` is the curvature of the private loss, which draws noise back: 1 where coordinates are whitened
    and nothing is clipped, 0 where every record is. The noise of a step shrinks by the same factor in every
    later one; of a descent with momentum this is not said.
    """
    if question.momentum:
        raise InputError("Expected a descent without momentum.")
    step, T = question.step_size, question.steps
    kept = 1 - step * (question.alpha + (1 - question.alpha) * pull)
    later = np.arange(T // 2, T)
    shares = [float(np.sum(kept ** (later[later >= t] - t))) / len(later) for t in range(T)]
    return step * (1 - question.alpha) / question.size * _scale(question) * float(np.linalg.norm(shares))


def _scale(question: LinearDescent) -> float:
    return float(question.plan.find(question.names()[0], Gaussian).scale)


def shrink_by_noise(V: FloatArray, deviation: float) -> FloatArray:
    """As James and Stein do: the noise's expected squared length over its own is taken off, or all of it.

    >>> shrink_by_noise(np.array([[3.0], [4.0]]), 1.0).round(2).tolist()
    [[2.76], [3.68]]
    >>> shrink_by_noise(np.array([[0.5], [0.5]]), 1.0).tolist()
    [[0.0], [0.0]]
    """
    length = float(np.sum(V**2))
    return V * (max(0.0, 1 - V.size * deviation**2 / length) if length else 0.0)


__all__ = ["averaged", "noise_of_average", "shrink_by_noise", "trajectory"]
