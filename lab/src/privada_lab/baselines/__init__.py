"""What people would use instead, private and not, with the same estimator face.

*Convention.* A private baseline is a `privada.privacy.Question` of its own, with its
answerer in the same module and an estimator in front: ``fit`` makes an owner in memory
whose budget is the guarantee, asks once, and keeps the release (``release_``,
``guarantee_``). So a baseline is priced, charged, noised and audited exactly as the
methods are, and an owner with a durable ledger can be asked the same question
(``owner.answer(question)``). Baselines belong to no entry point: their questions have
no file form of their own to be read back. What a baseline makes of its release, and
every baseline without private data, is plain code.

==================  ============================================================
module              what
==================  ============================================================
``adaptation``      KMM and DM: weights of the source that match the target, without privacy
``linear``          regression by noisy moments or minibatches, private DM
``logistic``        noisy full-batch gradient descent on the (softmax) logistic loss
``perturbation``    regression and classification by objective perturbation
``public``          ridge and logistic regression of public rows alone
``trivial``         a public model and one noisy number, histogram or sum; noisy mean and majority
``pate``            teachers on disjoint shards, noisy votes, a student
``propagation``     smoothing of class probabilities over a graph of public points
``adda``            adversarial adaptation, not private (extra ``deep``)
``transport``       source only, target only and optimal transport, not private
``clustering``      what people would do instead of source-target clustering, in one table
``private_kmeans``  k-means as Balcan et al. 2017 do it, soundly
``tree_kmeans``     k-means on a private tree of cubes
``hidden_target``   the target in the clear, the majority
``weighting``       importance weights for a public set, Ji and Elkan 2013
``dpsgd``           DP-SGD by Opacus, with torch's noise: measured, never asked (extra ``deep``)
``gan``             a generator trained with noisy gradients (extra ``deep``)
==================  ============================================================
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "adaptation": ("DM", "KMM"),
    "adda": ("ADDA",),
    "clustering": ("BASELINES", "DPGAN", "STC", "ClusterT", "PrivateKMeans", "TreeKMeans"),
    "private.dpsgd": ("DPSGDClassifier", "DPSGDRegressor"),
    "private.gan": ("GeneratedPoints",),
    "hidden_target": ("Majority", "TargetTrained"),
    "private.linear": (
        "DPLinearRegression",
        "MinibatchDescent",
        "NoisySGDRegressor",
        "PrivateDM",
        "SecondMoments",
    ),
    "private.logistic": ("DPLogisticRegression", "NoisyGradients"),
    "private.perturbation": ("PerturbedClassifier", "PerturbedMinimum", "PerturbedRegressor"),
    "private.pate": ("PATE", "TeacherVotes"),
    "private.private_kmeans": ("SwappedCenters",),
    "propagation": ("LabelPropagation", "propagate"),
    "public": ("PublicLogistic", "PublicRidge", "PublicScale"),
    "transport": ("OTDA", "source_only", "target_only"),
    "private.tree_kmeans": ("TreeCenters",),
    "private.trivial": (
        "NoisyMajority",
        "NoisyMean",
        "OneSumRegressor",
        "PriorCorrectedClassifier",
        "ResidualMean",
        "ResidualSum",
        "ShiftedRidge",
    ),
    "private.weighting": ("PrivateWeighting", "WeightingCoefficients"),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
