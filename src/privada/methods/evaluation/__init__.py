"""Evaluation: how well a model does on rows that never leave their owner.

*Who holds what.* An owner holds labelled rows. The learner holds a model: one of our own forms, ONNX, or
anything of scikit-learn's that exports to ONNX.

*Threat.* Whoever sees the release, and knows every row but one unit's, learns no more of that unit than the
guarantee says. Model, classes, thresholds, bins and bounds are public. The owner trusts no model: what it
returns for a record depends on that record alone, and ONNX runs in a process of its own under limits.

======  ==============================================  ================================
symbol  meaning                                         here
======  ==============================================  ================================
h       the model                                       ``OutcomeCounts.hypothesis``
y, ŷ    true class and prediction of a record           first and second axis of a table
s       score of a record, in a public bin              third axis of a table
u       squared error over its public bound L           ``ErrorMoments.largest``
m       largest number of rows of a unit                the schema
======  ==============================================  ================================

References: privacy.md, section 6.8; ``docs/methods/evaluation.md``.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "method": ("Evaluation",),
    "estimator": ("PrivateEvaluator", "evaluate"),
    "learner.results": ("Classification", "Regression", "learn"),
    "learner.intervals": ("Estimate",),
    "learner.models": ("as_hypothesis",),
    "questions": ("ErrorMoments", "OutcomeCounts", "even_edges"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
