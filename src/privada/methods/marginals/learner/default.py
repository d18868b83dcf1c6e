"""Questions of every kind, sized from public quantities alone, and what to expect of them.

The source, the announced size, the number of classes and the guarantee decide how many cells, bins or waves.
Nothing private is looked at. `privada.methods.marginals.learner.asking` chooses among the kinds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Partition
from privada.methods.marginals.learner import public
from privada.methods.marginals.learner.forecast import Forecast, explained, some_points
from privada.methods.marginals.learner.rounds import Rounds, incidence_of
from privada.methods.marginals.learner.smoothing.process import typical_distance
from privada.methods.marginals.questions.features import FeatureSums, fourier
from privada.methods.marginals.questions.hypotheses.forms import Constant
from privada.methods.marginals.questions.outcomes import OutcomeTables, even_plan, replaces
from privada.privacy.guarantee import ZCDP, Approximate, Guarantee, Pure
from privada.privacy.mechanism import Lattice

FloatArray = npt.NDArray[np.float64]
WAVES = 10  # of an embedding: more of them are noisier, and told no more on any set tried


def noise_of(guarantee: Guarantee, tables: int) -> float:
    """Standard deviation on each count of joint tables at this price."""
    rows = guarantee.unit.max_rows
    twice = replaces(guarantee)
    l1, l2 = rows * (2.0 if twice else 1.0), rows * (math.sqrt(2) if twice else 1.0)
    return _noise(guarantee, tables, l1=l1, l2=l2)


def _signed_noise(guarantee: Guarantee) -> float:
    moved = guarantee.unit.max_rows * (2.0 if replaces(guarantee) else 1.0)
    return _noise(guarantee, 1, l1=moved, l2=moved)


def _noise(guarantee: Guarantee, tables: int, *, l1: float, l2: float) -> float:
    draw = even_plan(guarantee, tuple(str(i) for i in range(tables)), l1=l1, l2=l2).draws["0"]
    assert isinstance(draw, Lattice)
    return math.sqrt(draw.variance)


def default_cells(
    source: FloatArray,
    *,
    guarantee: Guarantee,
    size: int,
    n_classes: int,
    seed: int,
    cells: int | None = None,
    reweight: bool = True,
) -> tuple[OutcomeTables, Forecast]:
    """One round of labels over cells: the default, for its noise does not grow with the features.

    Where the domains agree (``reweight=False``) and there are two classes, one signed number a cell is asked,
    not two counts: the expected rows of a cell are public then, and the noise on the difference of
    the classes is 1/√2 of what it would be.
    """
    signed = n_classes == 2 and not reweight
    noise = _signed_noise(guarantee) if signed else noise_of(guarantee, 1)
    wanted = cells
    if wanted is None:
        against = noise if signed else noise * math.sqrt(n_classes)
        wanted = public.cell_count(size=size, n_source=len(source), noise=against)
    count = min(_check.count(least=2, cells=wanted), len(np.unique(source, axis=0)))
    question = OutcomeTables(
        tables=(public.cells(source, count, seed),),
        n_classes=n_classes,
        count="signed" if signed else "labels",
        hypothesis=Constant(code=0) if signed else None,
        guarantee=guarantee,
        salt=f"seed {seed}" if seed else "",
    )
    points = some_points(source, seed)
    share = explained(
        points,
        [incidence_of(question.tables, points)],
        variance=noise**2 * (1 if signed else n_classes),
        size=size,
    )
    return question, Forecast(
        tables=1, entries=count, rounds=1, noise=noise, rows=size / count, explained=share
    )


def default_rounds(
    source: FloatArray,
    *,
    guarantee: Guarantee,
    size: int,
    rounds: int = 1,
    bins: int | None = None,
    features: int | None = None,
    vary: bool = False,
    separate: bool = False,
    pairs: bool = False,
    seed: int = 0,
    missing: Mapping[int, int] | None = None,
    **rest: Any,
) -> tuple[Rounds, Forecast]:
    """Single-feature marginals over planned rounds; ``features`` a round are drawn if given.

    With ``pairs`` each table is a grid over two features, for all pairs of them. With ``vary`` the edges of
    bins move from round to round; with ``separate`` the importance weights have a query of their own, as in
    the paper, and each round's tables are signed. With ``chosen`` the features that the first round has drawn
    are those that later rounds choose from. ``missing`` says which feature marks that another is missing.
    """
    shares = (shared(guarantee, _check.count(rounds=rounds) + separate),) * rounds
    kept = public.told(source.shape[1], missing or {})
    width = len(kept) if features is None else min(_check.count(features=features), len(kept))
    tables = math.comb(width, 2) if pairs else width
    if not tables:
        raise InputError("Expected at least two features for pairs.")
    noise = noise_of(shares[0], tables)
    count = public.bin_count(size=size, noise=noise) if bins is None else _check.count(least=2, bins=bins)
    count = max(2, round(math.sqrt(count))) if pairs and bins is None else count
    rng = np.random.default_rng(seed)
    questions: list[tuple[Partition, ...]] = []
    columns: tuple[int, ...] = ()
    for number in range(rounds):
        if not number or rest.get("chosen") is None:
            columns = tuple(sorted(kept[i] for i in rng.permutation(len(kept))[:width]))
        cut: dict[str, Any] = {
            "shift": (number + 0.5) / rounds - 0.5 if vary else 0.0,
            "missing": missing,
        }
        questions.append(
            public.group_bins(source, count, tuple(combinations(columns, 2)), **cut)
            if pairs
            else public.feature_bins(source, count, columns, **cut)
        )
    if separate:
        rest |= {"importance": shares[0], "count": "signed"}
    plan = Rounds(questions=tuple(questions), guarantees=shares, size=float(size), **rest)
    entries = count**2 if pairs else count
    share = _explained_by_rounds(source, plan, variance=(1 if separate else 2) * noise**2, seed=seed)
    return plan, Forecast(
        tables=tables, entries=entries, rounds=rounds, noise=noise, rows=size / entries, explained=share
    )


def _explained_by_rounds(source: FloatArray, plan: Rounds, *, variance: float, seed: int) -> float:
    """The first hypothesis is constant; later ones, not known yet, are taken to be random halves."""
    points = some_points(source, seed)
    rng = np.random.default_rng(seed)
    designs = []
    for number, tables in enumerate(plan.questions):
        side = (points - points.mean(axis=0)) @ rng.normal(size=points.shape[1])
        designs.append(incidence_of(tables, points) * (np.where(side > 0, 1.0, -1.0) if number else 1.0))
    assert plan.size is not None
    return explained(points, designs, variance=variance, size=plan.size)


def default_embedding(
    source: FloatArray,
    *,
    guarantee: Guarantee,
    size: int,
    n_classes: int,
    seed: int,
    waves: int = WAVES,
) -> tuple[FeatureSums, Forecast]:
    """Sums of random Fourier features by class, at the source's own scale."""
    scale = source.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    points = some_points(source, seed)
    length = typical_distance(points / scale)
    frequencies = np.random.default_rng(seed).normal(size=(source.shape[1], waves)) / scale[:, None] / length
    question = FeatureSums(
        frequencies=frequencies,
        n_classes=n_classes,
        guarantee=guarantee,
        salt=f"seed {seed}" if seed else "",
    )
    draw = question.plan.draws["sums"]
    assert isinstance(draw, Lattice)
    designs = [fourier(points, frequencies).T]
    share = explained(points, designs, variance=n_classes * draw.variance, size=size)
    noise, rows = math.sqrt(draw.variance), size / math.sqrt(waves)
    return question, Forecast(
        tables=1, entries=question.dimension, rounds=1, noise=noise, rows=rows, explained=share
    )


def shared(guarantee: Guarantee, rounds: int) -> Guarantee:
    """An even share of a guarantee for each of several rounds, such that they compose to it."""
    rest: dict[str, Any] = {"relation": guarantee.relation, "unit": guarantee.unit}
    if rounds == 1:
        return guarantee
    part = (1 - 1e-9) / rounds  # so that no last bit of a sum overspends
    if isinstance(guarantee, Pure):
        return Pure(epsilon=guarantee.epsilon * part, **rest)
    if isinstance(guarantee, ZCDP):
        return ZCDP(rho=guarantee.rho * part, **rest)
    assert isinstance(guarantee, Approximate)
    raise InputError("Expected rho, or a pure epsilon, for several rounds: (ε, δ) has no even shares.")


__all__ = [
    "Forecast",
    "default_cells",
    "default_embedding",
    "default_rounds",
    "noise_of",
    "shared",
]
