"""The noisy descent of `privada.methods.linear`, as this room asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privada.methods.linear.questions.descent import LinearDescent


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Descent(LinearDescent):
    """Ask for a noisy descent from a public warm start; parameters, payload and proof are `LinearDescent`'s.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivity of each sum ``2 c r``, times the
    rows of a person. Proof: `privada.methods.linear.questions.descent`.

    >>> import numpy as np
    >>> from privada.privacy import Approximate
    >>> guarantee = Approximate(epsilon=1, delta=1e-5, relation="replace-one")
    >>> question = Descent(size=100, weights=np.zeros((2, 1)), intercepts=[0.0], transform=np.eye(2),
    ...     shift=np.zeros(2), curvature=np.eye(2), radius=1.0, threshold=0.5, alpha=0.5, guarantee=guarantee)
    >>> f"{question.plan.draws['gradient_0'].scale / question.steps**0.5:.4f}"   # 2 c r times 3.7306
    '3.7306'
    """

    kind: ClassVar[str] = "reweighting.descent"


__all__ = ["Descent"]
