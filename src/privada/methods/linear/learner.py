"""The learner of a linear score: how long it descends, whom it asks, and what it makes of the releases.

Everything here follows from public numbers and from releases, so it is post-processing. A method chooses
the offset and the coordinates of the question, its steps, momentum and decay, the ``drift`` of
`choose_step_size`, and ``pull``, with which the average is shrunk by its known noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.methods.linear.questions.descent import LinearDescent
from privada.parties.protocol import AskOwner, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian
from privada.privacy.release import Question, Release


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearFit:
    """Weights of a linear score, and the releases that they come from.

    Attributes
    ----------
    weights : array of shape (k, outputs)
        In the coordinates of the question; those of softmax scores add up to 0 over the classes.
    releases : tuple of Release
    """

    weights: FloatArray
    releases: tuple[Release, ...]


def choose_step_size(
    *,
    drift: float,
    stable: float,
    steps: int,
    bound: float,
    size: int,
    guarantee: Guarantee,
    length: float = 1.0,
    momentum: float = 0.0,
) -> float:
    """The longest step that is stable and whose noise lets a usual score drift by no more than ``drift``.

    After time ``τ = T η / (1 - β)`` the noise of each weight is about ``τ Δ / (n μ)``, where Δ is the
    sensitivity of a sum, however many steps T there are. So more steps cost time and no privacy.

    Parameters
    ----------
    drift : float
        Standard deviation of the noise of a usual record's score at the end.
    stable : float
        The longest step that public curvature allows.
    steps, momentum : int and float, default=0.0
    bound : float
        Norm to which a record's contribution is shortened.
    size : int
        Announced number of rows.
    guarantee : Guarantee
    length : float, default=1.0
        Norm of a usual record's coordinates.

    >>> from privada.privacy import ZCDP
    >>> rho = ZCDP(rho=0.5, relation="replace-one")                                  # μ = 1
    >>> choose_step_size(drift=0.8, stable=9.0, steps=8, bound=0.5, size=100, guarantee=rho)
    9.0
    >>> choose_step_size(drift=0.8, stable=90.0, steps=8, bound=0.5, size=100, guarantee=rho)
    10.0
    """
    reach = bound * public.rows_moved(guarantee)
    time = drift * size * guarantee.gaussian_mu() / (reach * length)
    return min(stable, time * (1 - momentum) / steps)


def learn_linear(questions: Mapping[str, LinearDescent], *, pull: float | None = None) -> Learner[LinearFit]:
    """Ask owners for descents in the same coordinates, all at once, and pool their weights.

    Parameters
    ----------
    questions : mapping of owner to LinearDescent
    pull : float, optional
        See `fit_linear`.
    """
    releases = yield from ask_all(questions)
    pairs = list(zip(questions.values(), releases, strict=True))
    weights = [fit_linear(question, release, pull=pull) for question, release in pairs]
    # the inverse variance of each average's noise, but for factors that all owners share
    precisions = [(question.size * question.guarantee.gaussian_mu()) ** 2 for question in questions.values()]
    return LinearFit(weights=np.asarray(np.average(weights, axis=0, weights=precisions)), releases=releases)


def ask_all(questions: Mapping[str, Question]) -> Learner[tuple[Release, ...]]:
    """Ask each owner its question, all at once; nothing but releases comes back."""
    asks = [AskOwner(owner, question) for owner, question in questions.items()]
    # one ask alone is replied to by one release, several by a list
    releases = [(yield asks[0])] if len(asks) == 1 else (yield asks)
    only_releases(*releases)
    return tuple(releases)


def fit_linear(question: LinearDescent, release: Release, *, pull: float | None = None) -> FloatArray:
    """The weights that one release leads to.

    Parameters
    ----------
    question : LinearDescent
    release : Release
    pull : float, optional
        Curvature of the private loss, from 0 to 1: with it, the weights are shrunk by their known noise
        (`noise_of_average`). By default nothing is shrunk.
    """
    weights = average_path(question, release)
    return weights if pull is None else shrink_by_noise(weights, noise_of_average(question, pull=pull))


def follow_path(question: LinearDescent, release: Release) -> list[FloatArray]:
    """The points that the released sums lead through."""
    only_releases(release)
    path: list[FloatArray] = []
    V, velocity = question.start()
    for name in question.names():
        V, velocity = question.go_on(V, velocity, release[name])
        path.append(V)
    return path


def average_path(question: LinearDescent, release: Release) -> FloatArray:
    """Mean of the second half of the path."""
    path = follow_path(question, release)
    weights = np.asarray(np.mean(path[len(path) // 2 :], axis=0))
    if question.loss == "softmax":
        # what all classes share changes no probability, and would be noise alone
        weights -= weights.mean(axis=1, keepdims=True)
    return weights


def noise_of_average(question: LinearDescent, *, pull: float) -> float:
    """Standard deviation of the noise on each coordinate of `average_path`.

    ``pull`` is the curvature of the private loss, which draws noise back: 1 where coordinates are whitened
    and nothing is shortened, 0 where every record is. The noise of a step shrinks by the same factor in every
    later step. With momentum there is no such formula, so it is refused.
    """
    if question.momentum:
        raise InputError("Expected a descent without momentum.")
    remaining = 1 - question.step_size * (question.decay + pull)
    later = np.arange(question.steps // 2, question.steps)
    shares = [float(np.sum(remaining ** (later[later >= t] - t))) / len(later) for t in range(question.steps)]
    scale = question.plan.find("gradient_0", Gaussian).scale
    return question.step_size / question.size * float(scale) * float(np.linalg.norm(shares))


def shrink_by_noise(V: FloatArray, deviation: float) -> FloatArray:
    """Shrink as James and Stein do, by the noise's expected squared length over that of V, and at most to 0.

    >>> shrink_by_noise(np.array([[3.0], [4.0]]), 1.0).round(2).tolist()
    [[2.76], [3.68]]
    >>> shrink_by_noise(np.array([[0.5], [0.5]]), 1.0).tolist()
    [[0.0], [0.0]]
    """
    length = float(np.sum(V**2))
    return V * (max(0.0, 1 - V.size * deviation**2 / length) if length else 0.0)


__all__ = [
    "LinearFit",
    "ask_all",
    "average_path",
    "choose_step_size",
    "fit_linear",
    "follow_path",
    "learn_linear",
    "noise_of_average",
    "shrink_by_noise",
]
