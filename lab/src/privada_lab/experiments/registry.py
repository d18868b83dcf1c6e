"""The experiments that ``privada reproduce`` knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from privada import _check
from privada.exceptions import InputError
from privada.methods.method import load
from privada.report.exhibit import Exhibit, Figure
from privada_lab.datasets.files import FILES
from privada_lab.toml_tables import read_tables

Track = Callable[[Iterable[Any], str], Iterable[Any]]


class Run(Protocol):
    """What an experiment's module has as ``run``."""

    def __call__(
        self, *, runs: int, data: Path | None, track: Track, **settings: Any
    ) -> Iterator[Figure | Exhibit]:
        """Yield figures, and what is shown beside them, over ``runs`` runs; ``track`` shows progress.

        ``settings`` are those that the experiment names.
        """
        ...


@dataclass(frozen=True)
class OptionalPart:
    """A part of an experiment that is left out where an extra is not installed."""

    what: str
    module: str
    requirement: str

    @property
    def missing(self) -> bool:
        """Whether its module is not installed."""
        return find_spec(self.module) is None

    def __str__(self) -> str:
        return f"{self.what}: pip install '{self.requirement}'"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One experiment: a name, a title, and the module that runs it when asked.

    Attributes
    ----------
    path : "module:function"
        A `Run`.
    runs, quick_runs : int
        How many runs the figures stand on, in full and with ``--quick``.
    quick_share : float
        About how much of one run in full a quick run does: sets and rivals are left out of it, or what few
        runs in full measure is measured in it.
    shared : bool
        Whether processes can share its runs (`privada_lab.experiments.sharing`).
    settings : tuple of str
        Further settings that it takes: "half", "only", "limit", "out", "quick".
    optional : tuple of OptionalPart
        Parts that need an extra.
    """

    name: str
    title: str
    path: str
    runs: int = 1
    quick_runs: int = 1
    quick_share: float = 1.0
    shared: bool = False
    settings: tuple[str, ...] = ()
    optional: tuple[OptionalPart, ...] = ()

    def skipped(self, *, pictures: bool = False) -> list[str]:
        """The parts that are left out because an extra is not installed, each with the line that adds it."""
        drawn = (PICTURES,) if pictures else ()
        return [str(part) for part in (*self.optional, *drawn) if part.missing]

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files under the data folder that it reads."""
        return tuple(each.path for each in FILES.values() if self.name in each.experiments)

    @property
    def run(self) -> Run:
        """The function that yields the figures."""
        return load(self.path)

    def count(self, runs: int | None, *, quick: bool = False) -> int:
        """How many runs to make: those asked for, or its own.

        >>> experiment("cells").count(None), experiment("cells").count(None, quick=True)
        (50, 5)
        """
        if runs is not None and quick:
            raise InputError("Expected --runs or --quick, not both: a quick look has its own number.")
        if runs is not None:
            return _check.count(runs=runs)
        return self.quick_runs if quick else self.runs

    def taken(self, *, out: Path | None, quick: bool, **asked: Any) -> dict[str, Any]:
        """The further settings that it takes; one that was asked for and that it does not take is refused."""
        for name, value in asked.items():
            if value and name not in self.settings:
                able = ", ".join(each.name for each in experiments().values() if name in each.settings)
                raise InputError(f"Expected no --{name}: {self.name} does not take it, {able} does.")
        given = asked | {"out": out, "quick": quick}
        return {name: given[name] for name in self.settings}

    def jobs(self, jobs: int) -> int:
        """How many processes share its runs."""
        if _check.count(jobs=jobs) > 1 and not self.shared:
            able = ", ".join(name for name, each in experiments().items() if each.shared)
            raise InputError(f"Expected --jobs 1, got {jobs}: processes share the runs of {able} alone.")
        return jobs


PICTURES = OptionalPart("pictures; their numbers are written as CSV", "matplotlib", "privada[plot]")


def _read_experiments() -> dict[str, Experiment]:
    """The experiments of ``experiments.toml``, by name."""
    by_name = {}
    for row in read_tables(Path(__file__).with_name("experiments.toml"))["experiments"]:
        parts = tuple(OptionalPart(*part) for part in row.get("optional", ()))
        by_name[row["name"]] = Experiment(**row | {"optional": parts})
    return dict(sorted(by_name.items()))


_EXPERIMENTS = _read_experiments()


def experiments() -> dict[str, Experiment]:
    """All experiments, by name."""
    return dict(_EXPERIMENTS)


def experiment(name: str) -> Experiment:
    """One experiment, or an `InputError` that lists them."""
    if name not in experiments():
        raise InputError(f"Expected NAME to be one of {', '.join(experiments())}, got {name!r}.")
    return experiments()[name]


def untracked(items: Iterable[Any], what: str) -> Iterable[Any]:  # noqa: ARG001 - the signature of Track
    """Show no progress."""
    return items


__all__ = ["Experiment", "OptionalPart", "Run", "Track", "experiment", "experiments", "untracked"]
