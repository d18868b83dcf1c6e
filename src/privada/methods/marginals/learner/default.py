"""Tables over cells and over bins, sized from public quantities alone.

The source, the announced size, the number of classes and the guarantee decide how many cells or bins.
Nothing private is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Partition
from privada.methods.hypotheses.forms import Constant
from privada.methods.marginals.learner import public
from privada.methods.marginals.learner.rounds import Rounds
from privada.methods.marginals.questions.outcomes import OutcomeTables, even_plan, replaces
from privada.privacy.guarantee import ZCDP, Guarantee, PureDP


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
    plan = even_plan(guarantee, tuple(str(i) for i in range(tables)), l1=l1, l2=l2)
    return math.sqrt(plan.lattice("0").variance)


def default_cells(
    source: FloatArray,
    *,
    guarantee: Guarantee,
    size: int,
    n_classes: int,
    seed: int,
    cells: int | None = None,
    reweight: bool = True,
) -> OutcomeTables:
    """One round of labels over cells, whose noise does not grow with the features.

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
    return OutcomeTables(
        tables=(public.cells(source, count, seed),),
        n_classes=n_classes,
        count="signed" if signed else "labels",
        hypothesis=Constant(code=0) if signed else None,
        guarantee=guarantee,
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
    seed: int = 0,
    missing: Mapping[int, int] | None = None,
    **rest: Any,
) -> Rounds:
    """Single-feature marginals over planned rounds; ``features`` a round are drawn if given.

    With ``vary`` the edges of bins move from round to round; with ``separate`` the importance weights have a
    query of their own, as in the paper, and each round's tables are signed. With ``chosen`` the features that
    the first round has drawn are those that later rounds choose from. ``missing`` says which feature marks
    that another is missing.
    """
    shares = (shared(guarantee, _check.count(rounds=rounds) + separate),) * rounds
    kept = public.told(source.shape[1], missing or {})
    width = len(kept) if features is None else min(_check.count(features=features), len(kept))
    noise = noise_of(shares[0], width)
    count = public.bin_count(size=size, noise=noise) if bins is None else _check.count(least=2, bins=bins)
    rng = np.random.default_rng(seed)
    questions: list[tuple[Partition, ...]] = []
    columns: tuple[int, ...] = ()
    for number in range(rounds):
        if not number or rest.get("chosen") is None:
            columns = tuple(sorted(kept[i] for i in rng.permutation(len(kept))[:width]))
        shift = (number + 0.5) / rounds - 0.5 if vary else 0.0
        questions.append(public.feature_bins(source, count, columns, shift=shift, missing=missing))
    if separate:
        rest |= {"importance": shares[0], "count": "signed"}
    return Rounds(questions=tuple(questions), guarantees=shares, size=float(size), **rest)


def shared(guarantee: Guarantee, rounds: int) -> Guarantee:
    """An even share of a guarantee for each of several rounds, such that they compose to it."""
    rest: dict[str, Any] = {"relation": guarantee.relation, "unit": guarantee.unit}
    if rounds == 1:
        return guarantee
    part = (1 - 1e-9) / rounds  # so that no last bit of a sum overspends
    if isinstance(guarantee, PureDP):
        return PureDP(epsilon=guarantee.epsilon * part, **rest)
    if isinstance(guarantee, ZCDP):
        return ZCDP(rho=guarantee.rho * part, **rest)
    raise InputError("Expected rho, or a pure epsilon, for several rounds: (ε, δ) has no even shares.")


__all__ = [
    "default_cells",
    "default_rounds",
    "noise_of",
    "shared",
]
