"""The contenders: how each makes public points of a private source, for the same solver."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.exceptions import RehearsalWarning
from privada.methods.cells.estimator import CellMeans
from privada.methods.clustering.estimator import SourceTargetMedoids
from privada.parties.one_process.process_ledger import public_rows
from privada.privacy.guarantee import ZCDP, Guarantee, PureDP
from privada.privacy.relation import Relation
from privada_lab.baselines.clustering import N_CENTERS, SOURCES
from privada_lab.baselines.coreset import Coreset
from privada_lab.datasets.source_target import RADIUS, Pair
from privada_lab.experiments.clustering.compared import WITH_DELTA
from privada_lab.papers.clustering import PaperSource, nas_noise, paper_nas, paper_nna

Source = Callable[[Pair, Guarantee, int], FloatArray | None]

BUDGETS: dict[str, Guarantee] = {
    "pure": PureDP(epsilon=3.0, relation=Relation.ADD_REMOVE),
    "zcdp": ZCDP(rho=3.0, relation=Relation.ADD_REMOVE),
}
GAMMA = 0.05
CORESET = 0.05  # radius of the paper's coreset of the target
NEIGHBOURS = 150  # t of the paper's averages in the headline
OTHER_NEIGHBOURS = (75, 300)
DELTA = 1e-5  # of the printed NAS under Theorem 5.3
TRIVIAL = {"noisy mean": 1, "noisy cells": 32}  # cells of the target
CERTAIN_ROWS = 20.0  # of a cell: no noise of these budgets makes as many
BASELINES = ("PrivateKmeans", "TreeKmeans", "DP-GAN")


def _printed(
    paper: Callable[..., PaperSource], radius: float, pair: Pair, budget: Guarantee, seed: int
) -> FloatArray:
    """A printed mechanism around a coreset of the target; it is not private as claimed."""
    few = pair.target[Coreset.of(pair.target, radius=radius).indices]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return paper(pair.source, few, insecure_seed=seed, **_numbers(budget)).points


def _printed_balanced(pair: Pair, budget: Guarantee, seed: int) -> FloatArray:
    """The printed averages around the coreset that their own bound is best for: a public choice of C."""
    noise = partial(nas_noise, width=pair.target.shape[1], t=NEIGHBOURS, gamma=GAMMA, **_numbers(budget))
    few = pair.target[Coreset.balanced(pair.target, noise=noise).indices]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return paper_nas(pair.source, few, t=NEIGHBOURS, insecure_seed=seed, **_numbers(budget)).points


def _numbers(budget: Guarantee) -> dict[str, Any]:
    return {name: getattr(budget, name) for name in ("epsilon", "rho") if hasattr(budget, name)}


def _baseline(name: str, pair: Pair, budget: Guarantee, seed: int) -> FloatArray:
    return np.asarray(SOURCES[name](pair.source, budget, seed, RADIUS, N_CENTERS), dtype=np.float64)


def _noisy_means(cells: int, pair: Pair, budget: Guarantee, seed: int) -> FloatArray | None:
    """Noisy means of the source in k-means cells of the target; cells that may be empty are left out."""
    from sklearn.cluster import KMeans

    centres = KMeans(cells, n_init=2, random_state=seed).fit(pair.target).cluster_centers_
    model = CellMeans(
        centres, bounds=(-RADIUS, RADIUS), radius=2 * RADIUS, relation="add/remove", **_numbers(budget)
    )
    model.fit(pair.source)
    there = model.counts_ > CERTAIN_ROWS
    return np.asarray(model.means_[there]) if there.any() else None


def trivial() -> dict[str, Source]:
    """What costs a few lines: one noisy mean, or noisy means in public cells of the target."""
    return {name: partial(_noisy_means, cells) for name, cells in TRIVIAL.items()}


def uniform(pair: Pair, k: int, seed: int) -> IntArray:
    """Target points drawn at random: nothing is asked."""
    return np.asarray(np.random.default_rng(seed).choice(len(pair.target), k, replace=False))


def printed(*, t: int = NEIGHBOURS, coreset: float = CORESET) -> dict[str, Source]:
    """The paper's two mechanisms as printed."""
    return {
        "printed NNA": partial(_printed, partial(paper_nna, gamma=GAMMA), coreset),
        "printed NAS": partial(_printed, partial(paper_nas, t=t), coreset),
    }


def baselines() -> dict[str, Source]:
    """What people would use instead; a generator needs torch (the extra ``deep``)."""
    there = [name for name in BASELINES if name != "DP-GAN" or find_spec("torch")]
    return {name: partial(_baseline, name) for name in there}


def ablations() -> dict[str, Source]:
    """The paper's: other numbers of neighbours, no coreset or a balanced one, and Theorem 5.3's noise."""
    others = {f"printed NAS t={t}": printed(t=t)["printed NAS"] for t in OTHER_NEIGHBOURS}
    others |= {
        "printed NAS balanced": _printed_balanced,
        WITH_DELTA: partial(_printed, partial(paper_nas, t=NEIGHBOURS, delta=DELTA), CORESET),
    }
    return others | {f"{name} no coreset": source for name, source in printed(coreset=0.0).items()}


@public_rows()
def ours(pair: Pair, k: int, budget: Guarantee) -> IntArray:
    """The default of the product."""
    model = SourceTargetMedoids(k, norm_bound=RADIUS, **_numbers(budget))
    return model.fit(pair.source, Xt=pair.target).indices_


__all__ = [
    "BUDGETS",
    "CORESET",
    "TRIVIAL",
    "ablations",
    "baselines",
    "ours",
    "printed",
    "trivial",
    "uniform",
]
