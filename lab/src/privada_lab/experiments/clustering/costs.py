"""Costs and times of all contenders, one number a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from privada._arrays import FloatArray
from privada.report.exhibit import Curves, Series
from privada.report.tables import Table

ABLATED = ("coreset", "t=", "balanced", "delta")  # methods that are tabulated, not drawn


@dataclass
class Costs:
    """Costs on the true source by method and k, and seconds by method, one number a run."""

    found: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, method: str, k: int, cost: float) -> None:
        """Note one run."""
        self.found.setdefault(method, {}).setdefault(k, []).append(cost)

    def took(self, method: str, seconds: float) -> None:
        """Note what one run took."""
        self.seconds.setdefault(method, []).append(seconds)

    def values(self, method: str) -> FloatArray:
        """Costs by run and k."""
        return np.array([self.found[method][k] for k in sorted(self.found[method])]).T

    def mean(self, method: str) -> FloatArray:
        """Mean over runs for each k."""
        return np.asarray(self.values(method).mean(axis=0), dtype=np.float64)

    def shares(self, method: str) -> FloatArray:
        """Share of the gap closed at each k, in percent."""
        ignored, seen = self.mean("ClusterT"), self.mean("STC")
        return np.asarray(100 * (ignored - self.mean(method)) / (ignored - seen), dtype=np.float64)

    def gap_closed(self, method: str) -> float:
        """Share of the gap closed, summed over k, in percent."""
        ignored, seen = self.mean("ClusterT"), self.mean("STC")
        return float(100 * (ignored - self.mean(method)).sum() / (ignored - seen).sum())

    def interval(self, method: str) -> tuple[float, float] | None:
        """95 % interval of the share over runs, as of a ratio of two means (delta method)."""
        closed = (self.values("ClusterT") - self.values(method)).sum(axis=1)
        gap = (self.values("ClusterT") - self.values("STC")).sum(axis=1)
        if len(gap) < 2:
            return None
        share = self.gap_closed(method)
        off = np.std(100 * closed - share * gap, ddof=1) / np.sqrt(len(gap)) / gap.mean()
        return share - 1.96 * float(off), share + 1.96 * float(off)

    def curves(self, title: str, accounting: str) -> Curves:
        """Cost against k of all methods under one accounting, with what nothing can pass."""
        ks = sorted(next(iter(self.found.values())))
        shown = [name for name in self.found if name.endswith(accounting) or name in ("ClusterT", "STC")]
        names = [name for name in shown if not any(word in name for word in ABLATED)]
        labels = {accounting: f"ours, {accounting}"}
        series = tuple(
            Series.over_runs(labels.get(name, name), ks, self.values(name), role=_role(name))
            for name in names
        )
        return Curves(title=title, xlabel="k", ylabel="cost on the true source", series=series)


def _role(name: str) -> str:
    if name in ("ClusterT", "STC"):
        return "bound"
    return "ours" if name in ("pure", "zcdp") else "paper" if name.startswith("printed") else "baseline"


def shares_table(sets: Iterable[tuple[str, Costs]], *, title: str) -> Table:
    """Share of the gap closed by every method on every set, with what one run took."""
    rows = []
    for where, costs in sets:
        for method in costs.found:
            if method in ("ClusterT", "STC"):
                continue
            interval = costs.interval(method)
            margin = "" if interval is None else f"{(interval[1] - interval[0]) / 2:.1f}"
            worst = f"{costs.shares(method).min():.1f}"
            took = f"{np.mean(costs.seconds[method]):.2f}" if method in costs.seconds else ""
            rows.append((where, method, f"{costs.gap_closed(method):.1f}", margin, worst, took))
    columns = ("set", "method", "gap closed %", "±", "worst k %", "seconds a run")
    return Table(title=title, columns=columns, rows=tuple(rows))


__all__ = ["Costs", "shares_table"]
