"""Accuracies in the form of the paper's Tables 1 and 3: a row for each pair, the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privada.report.tables import Table
from privada_lab.experiments.transport.accuracies import MAIN, named
from privada_lab.experiments.transport.case import Scores

METHODS = {
    "ours, ε = 4": named("ours", MAIN),
    "PATE, ε = 4": named("PATE", MAIN),
    "DPDA sound, batches, ε = 4": named("DPDA made sound, minibatches", MAIN),
    "DPDA printed": "DPDA as printed (attribute level)",
    "DPDA printed, batches": "DPDA as printed, minibatches (attribute level)",
    "DPDA printed, network": "DPDA as printed, network (attribute level)",
    "OTDA": "OTDA 0.2 (not private)",
    "ADDA": "ADDA (not private)",
    "source only": "source only (not private)",
}
FEW_LABELS = {
    "ours, ε = 4": named("ours, 1 label a class", MAIN),
    "DPDA sound, ε = 4": named("DPDA made sound, 1 label a class", MAIN),
    "DPDA printed": "DPDA as printed, 1 label a class (attribute level)",
    "OTDA": "OTDA, 1 label a class (not private)",
    "target only": "target only, 1 label a class",
}
A, C, D, W = "amazon", "caltech", "dslr", "webcam"
TABLE_1 = {  # PATE, DPDA, OTDA, ADDA on DeCAF features
    (A, C): (81.4, 87.6, 88.3, 86.9),
    (A, D): (88.5, 91.0, 94.2, 91.7),
    (A, W): (77.9, 96.4, 95.5, 96.8),
    (C, A): (91.0, 91.9, 92.5, 92.1),
    (C, D): (85.9, 92.0, 92.5, 91.7),
    (C, W): (82.0, 93.9, 95.3, 95.5),
    (D, A): (67.2, 89.1, 92.5, 89.8),
    (D, C): (58.5, 79.0, 87.0, 85.8),
    (D, W): (81.3, 96.1, 98.7, 96.9),
    (W, A): (79.2, 93.1, 93.2, 93.0),
    (W, C): (70.9, 86.0, 87.6, 87.6),
    (W, D): (98.7, 98.0, 98.7, 99.2),
}
Pair = tuple[str, str]
NOTE = "Percent; ε at δ = 1/(10 n), replace-one."
RAW = (
    "DPDA printed: raw features, σ/w = 1.1, so what is protected "
    "is one attribute that moves by 1 in rows whose norm may be 40."
)


def table_1_form(scores: Scores, *, title: str, printed: bool) -> Table:
    """Accuracies by pair; with ``printed`` beside what the paper has of the same pair of domains."""
    beside = {"the paper: PATE, DPDA, OTDA, ADDA": TABLE_1} if printed else {}
    return _by_pair(scores, METHODS, title=f"{title}: Table 1's form", beside=beside, note=f"{NOTE} {RAW}")


def few_labels_form(scores: Scores, *, title: str) -> Table:
    """Accuracies with one label for each class, by pair: the right half of Table 3."""
    return _by_pair(scores, FEW_LABELS, title=f"{title}: one label for each class", beside={}, note=NOTE)


def _by_pair(
    scores: Scores,
    methods: Mapping[str, str],
    *,
    title: str,
    beside: Mapping[str, Mapping[Pair, tuple[float, ...]]],
    note: str,
) -> Table:
    there = {head: scores.found[name] for head, name in methods.items() if name in scores.found}
    pairs = list(dict.fromkeys(pair for found in there.values() for pair in found))
    rows = []
    for pair in pairs:
        cells = (f"{np.mean(found[pair]):.1f}" if pair in found else "" for found in there.values())
        paper = (", ".join(f"{value:.1f}" for value in found.get(pair, ())) for found in beside.values())
        rows.append((f"{pair[0]} to {pair[1]}", *cells, *paper))
    return Table(title=title, columns=("pair", *there, *beside), rows=tuple(rows), note=note)


__all__ = ["TABLE_1", "few_labels_form", "table_1_form"]
