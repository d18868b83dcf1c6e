"""Clustering: choose k public target points beside a private source (paper 000).

*Who holds what.* An owner holds a private source S. The learner holds a public
target T and may choose k of its points, to label or to serve, so that every target
point is near to a chosen one or to the source. What leaves the owner is a
*sanitised source* S': noisy counts, sums and averages around target points, from which everything
else is post-processing.

*Threat.* Whoever sees the releases, and knows every source row but one unit's,
learns no more of that unit than the guarantee says. The target, its coreset, all radii, t and
γ are public and told to the owner; the number of source rows is not public under add/remove.
Rows beyond the public ball are clipped, never counted.

======  ==========================================  ====================================
symbol  meaning                                     parameter
======  ==========================================  ====================================
S       private source                              the owner's rows
T, n    public target or its coreset, its size      ``cells``, ``targets``
X, R    public ball around 0, its radius            ``radius``, ``domain``
n_x     source rows nearest to x                    payload ``counts``
r_x     sum of those rows, clipped                  payload ``sums``
r_i     shells around each coreset point            ``shells``
t       neighbours that NAS averages                ``t``
Δᵗ(S)   mean distance to the t nearest rows         `SourceRadius`
γ       chance that any empty cell passes           ``gamma`` of `sanitise`
C       radius of the coreset                       public points within C of all others
S'      sanitised source                            `SanitisedSource`
======  ==========================================  ====================================

References: *Differentially Private Source-Target Clustering* (under review), whose theorems
hold as privacy.md, sections 1, 1b and 6.1, says; A. de Mathelin et al., *Discrepancy-Based Active Learning
for Domain Adaptation*, ICLR 2022.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "method": ("Clustering",),
    "estimator": ("SourceTargetMedoids",),
    "learner.bounds": (
        "CostBound",
        "LowerBound",
        "certified",
        "cost_bound",
        "cost_sensitivity",
        "lower_bound",
        "lower_bound_beside_radius",
        "separation",
    ),
    "learner.learn": (
        "Choice",
        "CostEstimate",
        "choose",
        "default_question",
        "estimate_cost",
        "forecast_gain",
        "learn",
    ),
    "learner.medoids": ("Solution", "cost", "expected_medoids", "medoids", "source_distances"),
    "learner.nodes": ("NodeCells", "NodeChoice", "choose_nodes", "learn_nodes"),
    "learner.source": (
        "RadiusEstimate",
        "SanitisedSource",
        "count_threshold",
        "estimate_radius",
        "posterior",
        "sanitise",
    ),
    "questions.means": ("NearestMeans", "NeighbourAverages", "SourceRadius"),
    "questions.multiscale": ("GridPyramid", "LocalMeans"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
