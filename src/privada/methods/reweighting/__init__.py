"""Reweighting: train on a public labelled source and a private labelled target (paper 003).

*Who holds what.* An owner holds the labelled target. The learner holds a labelled source from another
domain and wants one predictor for the target. What leaves the owner are noisy moments of the residuals of
public models, and noisy gradients along a descent that public data prepared; a noisy discrepancy of the two
samples, or the paper's own algorithms, if they are asked for.

*Threat.* Whoever sees the releases, and knows every target row but one unit's, learns no more of that unit
than the guarantee says. The number of target rows is public (replace-one). Source, bounds, α, κ's, number
and size of steps are public and told to the owner. Weights of private rows never leave, unless PCnvxAdap is
asked to release them, noised.

=============  ==============================================  =====================================
symbol         meaning                                         parameter
=============  ==============================================  =====================================
S^Pub, m       public source, its size                         ``Xs``, ``source``
S^Priv, n      private target, its size                        the owner's rows, ``size``
w, A           predictor, bound on its norm                    ``coef``, ``A``
r, B, G        bounds on features, loss, gradient              ``r``, `Bounds`
d              discrepancy of the two samples                  `Discrepancy`
α              weight of the public sample                     ``alpha``
q_i = 1/u_i    weight of row i                                 ``u``
κ₁, κ₂, κ_∞    penalties of the weights                        `Penalties`
F, J           objectives, equations (6) and (7)               `problem`
T, η           steps and their size                            ``steps``, ``step_size``
ψ, c           a record's pull, its bound                      `losses`
P, r~          public map, radius of clipping after it         ``transform``, ``radius``
=============  ==============================================  =====================================

References: *Private Domain Adaptation from a Public Source to a Private Target* (supervised; PCnvxAdap and
PNCnvxAdap), whose theorems hold as privacy.md, sections 4 and 6.5, says; P. Awasthi, C. Cortes and M. Mohri,
*Best-Effort Adaptation*, 2023.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "method": ("Reweighting",),
    "learner.adaptation": ("AdaptedPredictor", "learn_convex", "learn_nonconvex"),
    "deep": ("DeepReweightedClassifier", "DeepReweightedRegressor"),
    "learner.ladder": ("AdaptedModel", "Ladder", "plan"),
    "questions.supremum": ("Minimum", "Supremum", "labelled", "least_on_ball"),
    "estimator": ("ReweightedClassifier", "ReweightedRegressor"),
    "questions.problem": ("Bounds", "Penalties"),
    "questions.adaptation": ("ConvexAdaptation", "NonconvexAdaptation", "stopping_delta"),
    "privada.methods.linear.questions.descent": ("ReweightingDescent",),
    "questions.discrepancy": ("Discrepancy", "FiniteDiscrepancy"),
    "questions.module": ("ModuleAdaptation",),
    "privada.methods.linear.questions.features": ("PublicFeatures",),
    "questions.moments": ("CorrectionMoments", "MixtureMoments"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
