"""Rows of the page of papers: one module for each paper, each with a function ``items``."""

from __future__ import annotations

from privada_lab.experiments.papers.item import PaperItem
from privada_lab.experiments.papers.items import (
    clustering,
    marginals,
    reweighting,
    summarization,
    transport,
)


def all_items() -> tuple[PaperItem, ...]:
    """Every row, in the order of the papers."""
    modules = (clustering, marginals, transport, reweighting, summarization)
    return tuple(item for module in modules for item in module.items())


__all__ = ["all_items"]
