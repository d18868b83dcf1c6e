"""A private Wasserstein distance between a source that may not be seen and a public target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada._deprecated import accept_old_parameters
from privada.exceptions import InputError
from privada.methods.transport.learner.coupling import require_pot
from privada.methods.transport.learner.rows import Estimate, NoisyRows, distance_and_plan, estimate
from privada.methods.transport.questions.features import FeatureMap
from privada.methods.transport.questions.rows import RowRelease
from privada.parties.one_process.holding import (
    Dataset,
    hold_rows,
    read_dataset,
    settling,
    state_spent,
    warn_of_earlier_uses,
)
from privada.parties.protocol import AskOwner, Learner, one_round, only_releases
from privada.parties.running import run
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee, make_guarantee
from privada.privacy.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance:
    """A squared-cost Wasserstein distance in projected features.

    Attributes
    ----------
    distance : float
        Corrected for the noise, averaged over batches, and shrunk by what is left of its variance.
    uncorrected : float
        With the constant bias removed only: too small.
    batches : array
        The corrected distance of each batch, not shrunk. A batch's own distance is larger than the whole's,
        on average.
    plans : tuple of arrays
        For each batch the optimal plan between its noisy rows, in the order of the release, and the target
        points that it met; it sums to 1. A plan is chosen for the noise, too.
    met : tuple of arrays
        For each batch the places of those points in the target.
    spent : Guarantee or None
        What everything that the source was used for has cost, where `private_wasserstein` held it; None for
        public rows, and where it is unknown how rows of earlier fits were divided.
    """

    distance: float
    uncorrected: float
    batches: FloatArray
    plans: tuple[FloatArray, ...]
    met: tuple[npt.NDArray[np.int64], ...]
    release: Release
    spent: Guarantee | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "distance": self.distance,
            "uncorrected": self.uncorrected,
            "batches": len(self.batches),
            "guarantee": str(self.release.guarantee),
            "stamps": list(self.release.stamps),
        }


@one_round
def learn_distance(
    owner: str, question: RowRelease, target: npt.ArrayLike, *, seed: int = 0
) -> Learner[Distance]:
    """Ask one owner for noisy rows and measure how far the target is.

    Each batch meets a random subset of the target of at most its own size; ``seed`` is public.
    """
    require_pot()
    points = question.features.spread(_check.matrix(target=target, width=question.features.width))
    release = yield AskOwner(owner, question)
    only_releases(release)
    rng = np.random.default_rng(seed)
    plain, parts, plans, met = [], [], [], []
    for index, batch in enumerate(NoisyRows.of(question, release)):
        at = np.arange(len(points))
        if question.batch_size is not None:
            at = rng.permutation(len(points))[: len(batch.rows)]
        value, plan = distance_and_plan(batch, points[at])
        plain.append(value)
        plans.append(plan)
        met.append(at)
        parts.append(estimate(batch, points[at], seed=seed + index))
    return Distance(
        distance=Estimate.mean(parts).shrunk(),
        uncorrected=float(np.mean(plain)),
        batches=np.array([part.value for part in parts]),
        plans=tuple(plans),
        met=tuple(met),
        release=release,
    )


@accept_old_parameters
def private_wasserstein(
    source: Any,
    target: Any,
    *,
    bounds: Any,
    norm_bound: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    relation: str = "replace-one",
    n_components: int | None = None,
    batch_size: int | None = None,
    batches: int = 1,
    random_state: int = 0,
    insecure_seed: int | None = None,
    dataset: Dataset | None = None,
) -> Distance:
    """Squared-cost Wasserstein distance between a private source and a public target.

    Parameters
    ----------
    source : array of shape (rows, features)
        Private; its size is public.
    target : array of shape (rows, features)
    bounds : (low, high)
        Public limits of the features.
    norm_bound : float
        Radius to which rows are clipped after the projection (replace-one only).
    epsilon, delta, rho : float
        The guarantee.
    relation : str
        "replace-one" protects a row; "attribute" one attribute of a row, and far less noise is needed.
    n_components : int, optional
        Of the random projection; a tenth of the features by default, as the paper has it.
    batch_size, batches : int, optional
        Minibatches. Under "replace-one" sampling amplifies; under "attribute" it does not.
    random_state : int
        For public randomness.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged; rows are protected, not persons.

    Privacy
    -------
    Unit: one source row, or one attribute of it, as the relation says. Proof: `RowRelease`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.normal(0, 0.1, (200, 2)), rng.normal(2, 0.1, (200, 2))
    >>> found = [private_wasserstein(near, other, bounds=(-1, 1), norm_bound=1, n_components=2, epsilon=8,
    ...          delta=1e-4).distance for other in (near, far)]
    >>> found[0] < found[1]
    True

    The plan tells which target points the rows of the release go to:

    >>> found = private_wasserstein(near, far, bounds=(-1, 1), norm_bound=1, n_components=2, epsilon=8,
    ...                             delta=1e-4)
    >>> found.plans[0].shape, round(float(found.plans[0].sum()), 6)
    ((200, 200), 1.0)
    """
    holder = read_dataset(dataset)
    if holder.max_rows is not None:
        raise InputError("Expected no max_rows: rows are protected here, not persons.")
    points = _check.matrix(target=target)
    rows = np.asarray(source)
    schema = Schema.of_numbers(bounds=bounds, width=points.shape[1], size=len(rows))
    components = max(1, points.shape[1] // 10) if n_components is None else n_components
    features = FeatureMap.random(points.shape[1], components, seed=random_state, radius=norm_bound)
    widest = max(b - a for a, b in zip(schema.box.low, schema.box.high, strict=True))
    question = RowRelease(
        features=features,
        size=len(rows),
        batch_size=batch_size,
        batches=batches,
        attribute_width=widest if relation == "attribute" else None,
        guarantee=make_guarantee(epsilon=epsilon, delta=delta, rho=rho, relation=relation),
    )
    holding = hold_rows(
        rows,
        [question],
        schema=schema,
        budget=question.guarantee,
        name="source",
        ledger=holder.ledger,
        dataset=holder.names(1)[0],
        table=holder.table,
        insecure_seed=insecure_seed,
    )
    learner = learn_distance("source", question, points, seed=random_state)
    with settling([holding]):
        measured = run(learner.again(holding.salt), {"source": holding.owner})
        spent, _ = state_spent([holding]).try_to_read()
    warn_of_earlier_uses([holding])
    return replace(measured, spent=spent)


__all__ = ["Distance", "learn_distance", "private_wasserstein"]
