"""Marginals: learn from a target that never leaves its owner, through noisy sums and tables.

Armand Lacombe, Saumya Jetley, Michèle Sebag, "EXtremely PRivate supervised Learning",
CAP 2021 (hal-03620873), made sound: its lemma is false, and counts, not ratios, are released. By default a
linear model is asked for by a noisy descent instead, where the guarantee allows Gaussian noise.

*Who holds what.* An owner holds a labelled target. The learner holds unlabelled public
source rows, knows the classes, and may submit hypotheses.

*Threat.* Whoever sees the releases, and knows every row but one unit's, learns no more of
that unit than the guarantee says. Bins, cells, hypotheses, bounds, classes and the number of
rounds are public. The owner trusts no hypothesis: what it returns for a record depends on
that record alone, and ONNX runs in a process of its own under limits.

======  ==========================================  ============================
symbol  meaning                                     here
======  ==========================================  ============================
B_k     bins and cells                              ``OutcomeTables.tables``
h_t     hypothesis of round t                       ``OutcomeTables.hypothesis``
T       number of rounds                            ``OutcomeTables.rounds``
p, q    marginals and error marginals               ratios of released counts
R       which source row lies in which bin          design of the learner
w       importance weights                          ``SyntheticTarget.weights``
ŷ       labels of the source                        ``SyntheticTarget.codes``
======  ==========================================  ============================

References: privacy.md, sections 2, 6.2, 6.3 and 6.7; ``docs/methods/marginals.md``.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "method": ("Marginals",),
    "learner.asking": ("CellCounts", "ErrorTables", "forecast_error", "make_inquiry"),
    "learner.classifiers": ("of_classifier",),
    "learner.descent": ("ask_descent", "learn_descent", "learn_number"),
    "estimator": ("MarginalClassifier", "MarginalRegressor"),
    "learner.fitted": ("MarginalFit", "RegressionFit", "SyntheticNumbers", "SyntheticTarget"),
    "privada.methods.hypotheses.forms": (
        "Constant",
        "Hypothesis",
        "Network",
        "from_plain",
        "linear",
    ),
    "learner.learn": ("Public", "default_cells", "learn_cells"),
    "privada.methods.hypotheses.onnx": ("Onnx",),
    "learner.public": ("cells", "feature_bins", "missing_marks"),
    "questions": ("HypothesisChoice", "LabelHistogram", "OutcomeTables", "SquaredErrors"),
    "privada.methods.linear.questions.descent": ("MarginalsDescent",),
    "learner.regression": ("default_regression", "learn_regression"),
    "learner.rounds": ("Rounds", "default_rounds", "learn_rounds"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
