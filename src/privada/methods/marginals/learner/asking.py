"""How a hidden target is asked: by a descent where Gaussian noise is allowed, else for labels over cells."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privada import _check
from privada.exceptions import InputError
from privada.methods.forecast import ClassLine, Forecast, band_around
from privada.methods.marginals.learner.descent import ask_descent, learn_descent
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.marginals.learner.learn import Public, default_cells, learn_cells
from privada.methods.marginals.learner.public import check_announced
from privada.methods.marginals.learner.rounds import ESTIMATES, default_rounds, learn_rounds
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee, PureDP

KINDS = ("auto", "descent", "cells", "marginals")
FEWEST_ROWS = 10.0  # for the noise: with fewer nothing is expected
CLASSES = ClassLine(start=0.45, by_rows=0.57, by_direction=2.4, below=1.25, above=0.7)
NUMBERS, NUMBERS_BY_ROWS = 0.38, -0.16  # of the logarithm of the ratio
NUMBERS_BAND = (1.25, 0.7)


@dataclass(frozen=True, kw_only=True)
class CellCounts:
    """Ask once for labels over cells of the source: the default under a pure guarantee.

    Parameters
    ----------
    cells : int, default=None
        How many; by default as many as leave each four times its noise in rows.
    reweight : bool, default=True
        False if the learner knows that the domains agree: no weights are estimated, and two classes cost
        1/√2 of the noise.
    """

    cells: int | None = None
    reweight: bool = True

    def inquiry(self, owner: str, public: Public, *, guarantee: Guarantee, size: int) -> Inquiry[MarginalFit]:
        """Ask about cells."""
        _check_flag(reweight=self.reweight)
        question = default_cells(
            public.source,
            guarantee=guarantee,
            size=size,
            n_classes=len(public.classes),
            seed=public.seed,
            cells=self.cells,
            reweight=self.reweight,
        )
        return learn_cells(owner, question, public, size=float(size))


@dataclass(frozen=True, kw_only=True)
class ErrorTables:
    """The paper's algorithm: submit hypotheses, and ask for their errors over bins of single features.

    Parameters
    ----------
    rounds : int, default=1
        Each round asks how the model of the round before it fares.
    bins : int, default=None
        Of each feature; by default chosen from public quantities.
    features : int, default=None
        How many features are drawn for each round; by default all.
    chosen : int, default=None
        How many features are asked about after the first round: its most informative ones.
    vary : bool, default=False
        Move the edges of bins from round to round.
    separate : bool, default=False
        Give importance weights a query of their own, as the paper does.
    estimate : "smooth", "cumulative" or "instantaneous", default="smooth"
        How answers become labels: see `Rounds`.
    stop : float, default=0.0
        Ask no further round once fewer than this share of the source's labels changed in one. Rounds that
        are not asked cost nothing; 0 never stops early.
    reweight : bool, default=True
        False if the learner knows that the domains agree.
    """

    rounds: int = 1
    bins: int | None = None
    features: int | None = None
    chosen: int | None = None
    vary: bool = False
    separate: bool = False
    estimate: str = "smooth"
    stop: float = 0.0
    reweight: bool = True

    def inquiry(self, owner: str, public: Public, *, guarantee: Guarantee, size: int) -> Inquiry[MarginalFit]:
        """Ask round by round."""
        plan = default_rounds(
            public.source,
            guarantee=guarantee,
            size=size,
            seed=public.seed,
            missing=public.missing,
            **self._check(len(public.classes)),
        )
        return learn_rounds(owner, plan, public)

    def _check(self, n_classes: int) -> dict[str, Any]:
        """Check settings and return them by name; more than two classes are counted by class and outcome."""
        _check.one_of(ESTIMATES, estimate=self.estimate)
        _check.share(stop=self.stop)
        _check_flag(reweight=self.reweight)
        if self.chosen is not None:
            _check.count(chosen=self.chosen)
        if self.stop and self.rounds == 1:
            raise InputError(f"Expected stop=0 for one round, got {self.stop!r}; several may stop early.")
        if n_classes == 2:
            return asdict(self)
        if self.estimate != "smooth" or self.separate:
            raise InputError(
                'Expected estimate="smooth" and separate=False, got more than two classes, '
                "which are counted by joint tables alone."
            )
        return asdict(self) | {"count": "classes"}


def make_inquiry(
    question: Any, owner: str, public: Public, *, guarantee: Guarantee, size: int
) -> Inquiry[MarginalFit]:
    """Ask for a kind by name with its default settings, `CellCounts`, or `ErrorTables`.

    "auto" is a descent wherever the guarantee allows Gaussian noise (delta or rho), and cells under a pure
    one.
    """
    settings: dict[str, Any] = {"guarantee": guarantee, "size": check_announced(size)}
    if isinstance(question, (CellCounts, ErrorTables)):
        return question.inquiry(owner, public, **settings)
    kind = _check.one_of(KINDS, algorithm=question)
    if kind == "descent" or (kind == "auto" and not isinstance(guarantee, PureDP)):
        return learn_descent(owner, ask_descent(public, **settings), public)
    tables = ErrorTables() if kind == "marginals" else CellCounts()
    return tables.inquiry(owner, public, **settings)


def forecast_error(public: Public, *, guarantee: Guarantee, size: int) -> Forecast:
    """Expected error over that of one noisy number, from public facts alone; of a number without classes.

    For numbers, nothing public tells more than how many rows there are for the noise. Coefficients and bands
    were fitted with whole tables left out (``docs/measurements/marginals.md``).
    """
    # For a pure guarantee, half of ε: about as much noise as its Laplace noise on one number.
    mu = guarantee.epsilon / 2 if isinstance(guarantee, PureDP) else guarantee.gaussian_mu()
    rows = size * mu / guarantee.unit.max_rows
    if public.classes:
        rows_of_each = rows / len(public.classes)
        return CLASSES.expect(public.source, rows=rows_of_each, beside="the noisy majority class")
    line = NUMBERS + NUMBERS_BY_ROWS * math.log(rows) if rows >= FEWEST_ROWS else 0.0
    return band_around(line, *NUMBERS_BAND, "the noisy mean")


def _check_flag(**flag: Any) -> None:
    ((name, value),) = flag.items()
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"Expected {name} to be true or false, got {value!r}.")


__all__ = ["KINDS", "CellCounts", "ErrorTables", "forecast_error", "make_inquiry"]
