"""Rows of the page of papers: one TOML file for each paper, beside this module."""

from __future__ import annotations

from pathlib import Path

from privada_lab.experiments.papers.item import Cell, PaperItem
from privada_lab.toml_tables import read_tables

PAPERS = ("clustering", "marginals", "transport", "reweighting", "summarization")


def all_items() -> tuple[PaperItem, ...]:
    """Every row, in the order of the papers."""
    return tuple(item for paper in PAPERS for item in _read_items(paper))


def _read_items(paper: str) -> list[PaperItem]:
    """The rows of one file: its ``[defaults]``, and what each of its ``[[items]]`` says otherwise."""
    page = read_tables(Path(__file__).with_name(f"{paper}.toml"))
    items = []
    for row in page["items"]:
        cells = tuple(Cell(*cell) for cell in row.get("cells", ()))
        items.append(PaperItem(**page["defaults"] | row | {"cells": cells}))
    return items


__all__ = ["PAPERS", "all_items"]
