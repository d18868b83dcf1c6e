"""One table, figure or theorem of a paper: where ours is printed, and what the printed guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from privada.exceptions import InputError
from privada.report.exhibit import Curves, Exhibit
from privada.report.tables import Table


@dataclass(frozen=True)
class Cell:
    """One number of an exhibit, to stand in the overview.

    Attributes
    ----------
    exhibit : str
        Title of the exhibit, with ``*`` for any text; the first one that has the cell counts.
    row, column : str
        First cell of the row, or name of the line; head of the column, or place on the axis. The first
        such row counts.
    says : str
        What stands before the number.
    """

    exhibit: str
    row: str
    column: str
    says: str

    def read(self, exhibit: Exhibit) -> str | None:
        """The number in an exhibit, or None if it is not there.

        >>> table = Table(title="Table 1", columns=("set", "DM"), rows=(("gas", "0.4"),))
        >>> Cell("Table*", "gas", "DM", "gas by DM").read(table)
        'gas by DM 0.4'
        """
        if not fnmatchcase(exhibit.title, self.exhibit):
            return None
        if isinstance(exhibit, Curves):
            found = {
                (line.name, f"{x:g}"): f"{mean:.3g}"
                for line in exhibit.series
                for x, mean in zip(line.x, line.mean, strict=True)
            }
        else:
            table = exhibit if isinstance(exhibit, Table) else exhibit.table()
            found = {
                (row[0], head): cell
                for row in reversed(table.rows)
                for head, cell in zip(table.columns, row, strict=True)
            }
        value = found.get((self.row, self.column))
        return f"{self.says} {value}" if value else None


@dataclass(frozen=True, kw_only=True)
class PaperItem:
    """One row of the page of papers. Add one to the TOML file of its paper.

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
    cells : tuple of Cell
        Numbers of exhibits that stand in the overview.
    printed : str
        What the paper prints: its numbers, or in words what its curves show.
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
    cells: tuple[Cell, ...] = ()
    printed: str = ""
    claimed: str = ""
    true: str = ""
    missing: str = ""

    def __post_init__(self) -> None:
        if not (self.figures or self.exhibits or self.missing):
            raise InputError(f"Expected {self.name} to name figures or exhibits, or say what is missing.")

    def place_of(self, figure: str) -> int | None:
        """Which of its names of figures fits a figure first; None if it is not one of its own."""
        return next((i for i, each in enumerate(self.figures) if fnmatchcase(figure, each)), None)

    def has_exhibit(self, title: str) -> bool:
        """Whether a table, curves or a map belong to it.

        >>> PaperItem(paper="003", name="Table 3", shows="", experiment="reweighting",
        ...           exhibits=("Table 3*",)).has_exhibit("Table 3: MSE on reviews")
        True
        """
        return any(fnmatchcase(title, pattern) for pattern in self.exhibits)


__all__ = ["Cell", "PaperItem"]
