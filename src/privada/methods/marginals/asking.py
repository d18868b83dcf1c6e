"""What is asked of a hidden target: as said, as other settings imply, or what is forecast to tell most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privada import _check
from privada.exceptions import InputError
from privada.methods.marginals.default import default_cells, default_embedding, default_rounds
from privada.methods.marginals.fitted import MarginalFit
from privada.methods.marginals.forecast import Forecast
from privada.methods.marginals.learner import Public, learn_cells, learn_embedding
from privada.methods.marginals.question import OutcomeTables
from privada.methods.marginals.question_features import FeatureSums
from privada.methods.marginals.rounds import Rounds, learn_rounds
from privada.parties.protocol import Learner
from privada.privacy.guarantee import Approximate, Guarantee

KINDS = ("cells", "marginals", "pairs", "embedding")
ONE_ROUND = ("cells", "embedding")
MOST_PAIRED = 12  # features, beyond which their pairs are too many tables
TABLES = {  # settings of error tables, and what they are unless they are given
    "bins": None,
    "features": None,
    "vary": False,
    "separate": False,
    "chosen": None,
    "estimate": "smooth",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Asking:
    """A question or a plan of rounds, and what it would tell."""

    asked: OutcomeTables | FeatureSums | Rounds
    forecast: Forecast
    size: float

    def learner(self, owner: str, public: Public) -> Learner[MarginalFit]:
        """Who asks it."""
        if isinstance(self.asked, Rounds):
            return learn_rounds(owner, self.asked, public)
        if isinstance(self.asked, FeatureSums):
            return learn_embedding(owner, self.asked, public)
        return learn_cells(owner, self.asked, public, size=self.size)


def askings(
    kind: str,
    public: Public,
    *,
    guarantee: Guarantee,
    size: int,
    rounds: int | None = None,
    cells: int | None = None,
    reweight: bool = True,
    **tables: Any,
) -> dict[tuple[str, int], Asking]:
    """What could be asked, by kind and number of rounds, best first; one alone unless ``kind`` is "auto".

    A setting of one kind decides for it: ``cells``, or ``rounds`` and what `TABLES` names.
    """
    _check.one_of(("auto", *KINDS), question=kind)
    tables = _tables(TABLES | tables, public)
    settings: dict[str, Any] = {"guarantee": guarantee, "size": size, "reweight": reweight}
    if kind == "auto" and cells is not None:
        kind = "cells"
    elif kind == "auto" and (rounds is not None or any(tables[name] != TABLES[name] for name in TABLES)):
        kind = "marginals"
    if kind != "auto":
        number = 1 if rounds is None else _check.count(rounds=rounds)
        if kind in ONE_ROUND and number > 1:
            raise InputError(f'Expected rounds only for error tables, got {number} for question="{kind}".')
        return {(kind, number): _asking(kind, number, public, tables, cells=cells, **settings)}
    pairs = 1 < public.source.shape[1] <= MOST_PAIRED
    found = {(each, 1): _asking(each, 1, public, tables, **settings) for each in ONE_ROUND}
    for number in (1,) if isinstance(guarantee, Approximate) else (1, 2):
        for each in ("marginals", "pairs") if pairs else ("marginals",):
            found[each, number] = _asking(each, number, public, tables, **settings)
    return dict(sorted(found.items(), key=lambda item: -item[1].forecast.explained))


def _tables(given: dict[str, Any], public: Public) -> dict[str, Any]:
    """Settings of error tables, checked; several classes are heard by class and outcome."""
    _check.one_of(("smooth", "cumulative", "instantaneous"), estimate=given["estimate"])
    if given["chosen"] is not None:
        _check.count(chosen=given["chosen"])
    if len(public.classes) == 2:
        return given
    if given["estimate"] != "smooth" or given["separate"]:
        raise InputError(
            'Expected estimate="smooth" and separate=False, got more than two classes, '
            "which are heard by joint tables alone."
        )
    return given | {"count": "classes"}


def _asking(
    kind: str,
    rounds: int,
    public: Public,
    tables: dict[str, Any],
    *,
    reweight: bool,
    cells: int | None = None,
    **settings: Any,
) -> Asking:
    settings["seed"] = public.seed
    asked: OutcomeTables | FeatureSums | Rounds
    if kind == "cells":
        asked, forecast = default_cells(
            public.source, n_classes=len(public.classes), cells=cells, reweight=reweight, **settings
        )
    elif kind == "embedding":
        asked, forecast = default_embedding(public.source, n_classes=len(public.classes), **settings)
    else:
        asked, forecast = default_rounds(
            public.source, rounds=rounds, pairs=kind == "pairs", reweight=reweight, **tables, **settings
        )
    return Asking(asked=asked, forecast=forecast, size=float(settings["size"]))


__all__ = ["KINDS", "TABLES", "Asking", "askings"]
