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
from privada.methods.registry import Method
from privada.methods.situation import Situation

METHOD = Method(
    name="evaluation",
    title="Tell how well a model does on rows that stay at their owner",
    paper="Dwork, McSherry, Nissim and Smith 2006 (histograms); Clopper and Pearson 1934 (intervals)",
    question_paths=(
        "privada.methods.evaluation.questions:OutcomeCounts",
        "privada.methods.evaluation.questions:ErrorMoments",
    ),
    study_path="privada.methods.evaluation.study:inquire",
    example_path="privada.methods.evaluation.example:example",
    demo_path="privada.methods.evaluation.demo:demo",
    template_path="privada.methods.evaluation.template:template",
    situation=Situation(want="score", because="one noisy table says how well your model does there."),
)

_HOMES = {
    "estimator": ("PrivateEvaluator", "evaluate"),
    "learner.results": ("Classification", "Regression", "learn"),
    "learner.intervals": ("Estimate",),
    "learner.models": ("as_hypothesis",),
    "questions": ("ErrorMoments", "OutcomeCounts", "even_edges"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
