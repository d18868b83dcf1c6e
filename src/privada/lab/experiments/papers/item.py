"""One table, figure or theorem of a paper: where ours is printed, and what the printed guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from privada.exceptions import InputError


@dataclass(frozen=True, kw_only=True)
class PaperItem:
    """One row of the page of papers. Add one to the module of its paper in `items`.

    Attributes
    ----------
    paper : str
        Number of the paper, "000" to "004".
    name : str
        As the paper calls it: "Figure 3, top".
    shows : str
        What is in it.
    experiment : str
        The experiment of ``privada reproduce`` that prints it.
    figures, exhibits : tuple of str
        Names of figures and titles of tables, curves and maps, with ``*`` for any text.
    printed : str
        What the paper prints.
    claimed, true : str
        The printed mechanism's guarantee as claimed, and as it is.
    missing : str
        Why there is no reproduction, or what of it is missing; empty if nothing is.
    """

    paper: str
    name: str
    shows: str
    experiment: str
    figures: tuple[str, ...] = ()
    exhibits: tuple[str, ...] = ()
    printed: str = ""
    claimed: str = ""
    true: str = ""
    missing: str = ""

    def __post_init__(self) -> None:
        if not (self.figures or self.exhibits or self.missing):
            raise InputError(f"Expected {self.name} to name figures or exhibits, or say what is missing.")

    def has_figure(self, name: str) -> bool:
        """Whether a figure belongs to it."""
        return any(fnmatchcase(name, pattern) for pattern in self.figures)

    def has_exhibit(self, title: str) -> bool:
        """Whether a table, curves or a map belong to it.

        >>> PaperItem(paper="003", name="Table 3", shows="", experiment="reweighting",
        ...           exhibits=("Table 3*",)).has_exhibit("Table 3: MSE on reviews")
        True
        """
        return any(fnmatchcase(title, pattern) for pattern in self.exhibits)


__all__ = ["PaperItem"]
