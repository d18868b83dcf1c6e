"""Summarization: p training points from K private owners that match a private validation set (paper 004).

*Who holds what.* A consumer holds a small private validation set D_v. K owners hold private,
labelled rows. A *trusted curator* gathers a summary D_s of p rows whose kernel mean is near
that of D_v, and trains on it. What owners learn of D_v and of each other is differentially
private: noisy sums of random Fourier features, and noisy counts.

*Threat.* An owner, or any coalition of owners, that knows every row of D_v and of the other owners
but one unit's, learns no more of that unit than the guarantee says. In rounds with ``ask_share > 0`` this
holds for one owner at a time, or for the ``coalition`` that is paid for, and not for more: owners who put
their asking bits together see more than each of them (`Participation.against`). **There is no protection
from the curator or the consumer beyond parsimony**: the curator receives p raw rows, as
`Disclosure`s that each owner's policy must allow and that ledgers log as not differentially
private. D_s never goes back to owners, nor a model trained on it (see `Summary.train`).
Kernel, frequencies, sizes n_k and m, and p are public; each owner learns its own a_k.

=========  ===============================================  ==========================================
symbol     meaning                                          parameter
=========  ===============================================  ==========================================
D_v, m     validation set and its public size               the consumer's rows
D_k, n_k   rows of owner k and their public number          the owners' rows
h          paired random Fourier features, ``|h(x)| = 1``   `FourierEmbedding`
γ          kernel ``exp(-γ |x - y|²)``                      ``gamma``
g~         noisy mean of h over D_v                         `EmbeddingSum`
S_k        noisy sum of h over D_k                          `EmbeddingSum`
c_k        noisy count of rows nearer to g~                 `NearCount`
a_k        rows that owner k contributes                    `allocate`
D_s, p     the summary and its size                         `Summary`, ``size``
D_init     initial rows, public or protected                `InitialRows`, ``start`` of rounds
=========  ===============================================  ==========================================

References: K. Sarpatwar et al., *Differentially Private Distributed Data Summarization under Covariate
Shift*, NeurIPS 2019, whose auction and totals do not hold as printed: privacy.md, section 5; what is done
instead: section 6.6. B. Kim et al., *Examples are not Enough, Learn to Criticize!*, NeurIPS 2016.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "method": ("Summarization",),
    "curator": ("Consumer", "Curator", "CuratorNoise", "OwnerNode", "Transcript", "supply_noise"),
    "estimator": ("PrivateSummarizer",),
    "learner.learn": ("InitialRows", "Matching", "gather", "match", "summarise"),
    "learner.rounds": ("greedy_rounds",),
    "learner.summary": (
        "Allocation",
        "Reference",
        "Summary",
        "allocate",
        "estimate_shares",
        "herd",
        "marginal_gains",
    ),
    "owner": ("denoise",),
    "privada.parties.protocol": ("Absent",),
    "questions.matching": (
        "EmbeddedRows",
        "EmbeddingSum",
        "FourierEmbedding",
        "NearCount",
        "SummaryRows",
        "mmd2",
    ),
    "questions.rounds": (
        "AskRule",
        "Everyone",
        "GaussianThreshold",
        "Participation",
        "RoundBids",
        "RoundPlan",
        "RoundPoints",
        "ranks",
    ),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
