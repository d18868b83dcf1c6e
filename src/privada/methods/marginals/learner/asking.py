"""What is asked of a hidden target: as said, as other settings imply, or what is forecast to tell most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privada import _check
from privada.exceptions import InputError
from privada.methods.marginals.learner.default import default_cells, default_embedding, default_rounds
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.marginals.learner.forecast import Forecast
from privada.methods.marginals.learner.learn import Public, learn_cells, learn_embedding
from privada.methods.marginals.learner.rounds import ESTIMATES, Rounds, learn_rounds
from privada.methods.marginals.questions.features import FeatureSums
from privada.methods.marginals.questions.outcomes import OutcomeTables
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
    "stop": 0.0,
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

    A setting of one kind decides for it: ``cells``; or ``rounds``
    and what `TABLES` names. One of another kind than is asked for is refused.
    """
    _check.one_of(("auto", *KINDS), question=kind)
    _check.count(size=size)
    if not isinstance(reweight, (bool, np.bool_)):
        raise InputError(f"Expected reweight to be true or false, got {reweight!r}.")
    tables = _tables(TABLES | tables, public)
    settings: dict[str, Any] = {"guarantee": guarantee, "size": size, "reweight": reweight}
    if kind == "auto" and cells is not None:
        kind = "cells"
    elif kind == "auto" and (rounds is not None or any(tables[name] != TABLES[name] for name in TABLES)):
        kind = "marginals"
    if kind != "auto":
        number = 1 if rounds is None else _check.count(rounds=rounds)
        _of_one_kind(kind, number, cells, tables)
        return {(kind, number): _asking(kind, number, public, tables, cells=cells, **settings)}
    pairs = 1 < public.source.shape[1] <= MOST_PAIRED
    found = {(each, 1): _asking(each, 1, public, tables, **settings) for each in ONE_ROUND}
    for number in (1,) if isinstance(guarantee, Approximate) else (1, 2):
        for each in ("marginals", "pairs") if pairs else ("marginals",):
            found[each, number] = _asking(each, number, public, tables, **settings)
    return dict(sorted(found.items(), key=lambda item: -item[1].forecast.explained))


def _of_one_kind(kind: str, rounds: int, cells: int | None, tables: dict[str, Any]) -> None:
    """Refuse settings that the kind of question has not."""
    given = {name: tables[name] for name in TABLES if tables[name] != TABLES[name]}
    given |= {"rounds": rounds} if rounds > 1 else {}
    if kind in ONE_ROUND and given:
        name, value = next(iter(given.items()))
        raise InputError(f'Expected {name} only for error tables, got {value!r} for question="{kind}".')
    if kind != "cells" and cells is not None:
        raise InputError(f'Expected cells only for question="cells", got {cells!r} for question="{kind}".')
    if "stop" in given and rounds == 1:
        raise InputError(f"Expected stop=0 for one round, got {tables['stop']!r}; several may stop early.")


def _tables(given: dict[str, Any], public: Public) -> dict[str, Any]:
    """Settings of error tables, checked; several classes are heard by class and outcome."""
    _check.one_of(ESTIMATES, estimate=given["estimate"])
    _check.share(stop=given["stop"])
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
            public.source,
            rounds=rounds,
            pairs=kind == "pairs",
            missing=public.missing,
            reweight=reweight,
            **tables,
            **settings,
        )
    return Asking(asked=asked, forecast=forecast, size=float(settings["size"]))


__all__ = ["KINDS", "TABLES", "Asking", "askings"]
