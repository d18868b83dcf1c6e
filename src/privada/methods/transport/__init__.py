"""Transport: a classifier for a target domain from a labelled source that may not be seen.

*Who holds what.* One owner or several hold labelled rows of a source domain. The learner holds the target,
unlabelled or with a few labels, and keeps it. Released are noisy gradients of a logistic regression (the
default), class statistics of projected, clipped rows, or noisy rows with randomised labels.

*Threat.* Whoever sees the releases, and knows every source row but one, learns no more of that row than the
guarantee says. Sizes are public (replace-one), and so are classes, bounds, the projection and its radius.
The target is not protected from an owner who is asked with a projection fitted on it; a random projection
tells nothing. At *attribute* level only one attribute of a row is protected: a person's whole row is not.

======  ==================================================  ==================================
symbol  meaning                                             parameter
======  ==================================================  ==================================
X_s, Y  rows and labels of the source                       the owner's
n_s     their number                                        ``size``
X_t     rows of the target                                  ``target``
M, P    public projection                                   ``features``
l, d    its number of components                            ``n_components``
R       radius to which projected rows are clipped          ``FeatureMap.radius``
w       largest row norm of M                               ``FeatureMap.row_norms()``
γ       coupling                                            ``coupling_``
λ_e     entropic regularisation                             ``reg_e``
λ_g     group regularisation                                ``reg_cl``
ε'      budget of a randomised label                        ``label_epsilon``
======  ==================================================  ==================================

Reference: N. LeTien, A. Habrard and M. Sebban, *Differentially Private Optimal Transport: Application to
Domain Adaptation*, IJCAI 2019 (paper 002); privacy.md, sections 3 and 6.4.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "method": ("Transport",),
    "learner.coupling": ("barycentric", "entropic", "group_lasso", "objective"),
    "learner.default": ("default_map", "default_question", "standardised_map"),
    "estimator": ("TransportClassifier",),
    "questions.features": ("FeatureMap",),
    "learner.graph": ("NeighbourGraph",),
    "learner.forecast": ("forecast",),
    "learner.learn": ("TransportModel", "learn", "learn_descent", "learn_rows"),
    "learner.linear_head": ("LinearHead", "ask_head"),
    "privada.methods.linear.questions.descent": ("TransportDescent",),
    "learner.adaptation": ("Prototypes",),
    "questions.statistics": ("ClassStatistics",),
    "questions.rows": ("RowRelease",),
    "learner.rows": ("NoisyRows", "corrected_distance", "plain_distance"),
    "wasserstein": ("Distance", "learn_distance", "private_wasserstein"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
