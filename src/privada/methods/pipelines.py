"""Find out that a private estimator is fitted inside a pipeline whose earlier steps have looked at its rows.

scikit-learn does not tell an estimator where it stands, so the calls above its ``fit`` are asked.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from sklearn.pipeline import Pipeline

from privada.exceptions import PrivacyLeakWarning
from privada.methods.preprocessing import unpaid_steps

DEEPEST = 40  # calls that are asked


def warn_of_unpaid_steps(estimator: Any) -> None:
    """Warn if a pipeline is fitting this estimator after steps that were fitted to its private rows."""
    pipeline = _find_pipeline(estimator)
    unpaid = [] if pipeline is None else unpaid_steps(pipeline)
    if unpaid:
        warnings.warn(
            f"{', '.join(unpaid)} before {type(estimator).__name__} was fitted to the private rows: what it "
            "learnt of them is in the model and nobody paid for it. Use PublicScaler, or fit it to public "
            "rows and freeze it (make_private_pipeline).",
            PrivacyLeakWarning,
            stacklevel=3,
        )


def _find_pipeline(estimator: Any) -> Pipeline | None:
    frame: FrameType | None = sys._getframe()
    for _ in range(DEEPEST):
        if frame is None:
            return None
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline) and caller.steps and caller.steps[-1][1] is estimator:
            return caller
        frame = frame.f_back
    return None


__all__ = ["warn_of_unpaid_steps"]
