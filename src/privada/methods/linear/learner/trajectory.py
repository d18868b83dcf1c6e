"""The points that a noisy descent passed through, from its released sums. All post-processing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada.methods.linear.questions.descent import LinearDescent
from privada.parties.protocol import only_releases
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]


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


__all__ = ["averaged", "trajectory"]
