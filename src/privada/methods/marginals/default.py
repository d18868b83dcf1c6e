"""A question that chooses itself, from public quantities alone, and what to expect of it.

Chosen are the kind of question and the number of cells or bins; source size, announced
size, number of features and classes and the guarantee decide. Nothing private is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.marginals import public
from privada.methods.marginals.hypothesis import Constant
from privada.methods.marginals.question import OutcomeTables, even_plan, replaces
from privada.methods.marginals.rounds import Rounds
from privada.privacy.guarantee import ZCDP, Approximate, Guarantee, Pure
from privada.privacy.mechanism import Lattice

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Noise against signal, before anything is spent.

    Attributes
    ----------
    tables, entries : int
        Tables of a round, and cells or bins of a table.
    noise : float
        Standard deviation on each count.
    rows : float
        Rows a cell or bin can expect, from the announced size.
    """

    tables: int
    entries: int
    rounds: int
    noise: float
    rows: float

    @property
    def signal_to_noise(self) -> float:
        """Expected rows of an entry over the noise on it."""
        return self.rows / self.noise

    def __str__(self) -> str:
        return (
            f"{self.rounds} round(s) of {self.tables} table(s) with {self.entries} cells: about "
            f"{self.rows:.1f} rows a cell, noise ±{self.noise:.1f} "
            f"(signal to noise {self.signal_to_noise:.1f})"
        )


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
    return question, Forecast(tables=1, entries=count, rounds=1, noise=noise, rows=size / count)


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
    **rest: Any,
) -> tuple[Rounds, Forecast]:
    """Single-feature marginals over planned rounds; ``features`` a round are drawn if given.

    With ``vary`` the edges of bins move from round to round; with ``separate`` the importance weights
    have a query of their own, as in the paper, and each round's tables are signed.
    """
    shares = (shared(guarantee, _check.count(rounds=rounds) + separate),) * rounds
    width = source.shape[1] if features is None else min(_check.count(features=features), source.shape[1])
    noise = noise_of(shares[0], width)
    count = public.bin_count(size=size, noise=noise) if bins is None else _check.count(least=2, bins=bins)
    rng = np.random.default_rng(seed)
    questions = tuple(
        public.feature_bins(
            source,
            count,
            tuple(sorted(rng.permutation(source.shape[1])[:width].tolist())),
            shift=(number + 0.5) / rounds - 0.5 if vary else 0.0,
        )
        for number in range(rounds)
    )
    if separate:
        rest |= {"importance": shares[0], "count": "signed"}
    plan = Rounds(questions=questions, guarantees=shares, size=float(size), **rest)
    return plan, Forecast(tables=width, entries=count, rounds=rounds, noise=noise, rows=size / count)


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


__all__ = ["Forecast", "default_cells", "default_rounds", "noise_of", "shared"]
