"""The experiments that ``privada reproduce`` knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from privada import _check
from privada.exceptions import InputError
from privada.methods.registry import load
from privada.report.exhibit import Exhibit
from privada.report.figure import Figure
from privada_lab.datasets.files import FILES

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
        found: Run = load(self.path)
        return found

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
_EXPERIMENTS = (
    Experiment(
        name="cells",
        title="Digits classified by private counts in public cells",
        path="privada_lab.experiments.cells:run",
        runs=50,
        quick_runs=5,
        shared=True,
    ),
    Experiment(
        name="clustering",
        title="Centres beside a private source: the share of the gap closed",
        path="privada_lab.experiments.clustering:run",
        runs=30,
        quick_runs=1,
        quick_share=0.33,
        optional=(OptionalPart("the baseline DP-GAN", "torch", "privada-lab[deep]"),),
    ),
    Experiment(
        name="clustering-all-targets",
        title="The same on the real pairs with all of their target points",
        path="privada_lab.experiments.clustering:run_all_targets",
        runs=30,
        quick_runs=1,
        quick_share=0.07,
    ),
    Experiment(
        name="core",
        title="The core's calibration beside the specification",
        path="privada_lab.experiments.core:run",
    ),
    Experiment(
        name="forecasts",
        title="What each method forecast before anything was spent, beside what came",
        path="privada_lab.experiments.forecasts:run",
        runs=5,
        quick_runs=1,
        shared=True,
        settings=("half", "only", "quick"),
    ),
    Experiment(
        name="marginals",
        title="A hidden target: accuracy through tables of outcomes, beside the printed EXPRIL",
        path="privada_lab.experiments.marginals:run",
        runs=100,
        quick_runs=1,
        quick_share=3.5,
        shared=True,
    ),
    Experiment(
        name="marginals-limits",
        title="A hidden target: what labels over cells lose, and to what, on seeds that no figure scores",
        path="privada_lab.experiments.marginals.limits:run",
        runs=30,
        quick_runs=1,
        shared=True,
    ),
    Experiment(
        name="papers",
        title="Every table and figure of the five papers, on one page",
        path="privada_lab.experiments.papers:run",
        shared=True,
        settings=("only", "out", "quick"),
    ),
    Experiment(
        name="reweighting",
        title="Training for a private target with a public source, beside private baselines",
        path="privada_lab.experiments.reweighting:run",
        runs=10,
        quick_runs=1,
        quick_share=0.15,
        shared=True,
        optional=(OptionalPart("the baseline DP-SGD (not in a quick look)", "opacus", "privada-lab[deep]"),),
    ),
    Experiment(
        name="summarization",
        title="Training summaries from many owners for a private validation set",
        path="privada_lab.experiments.summarization:run",
        runs=10,
        quick_runs=1,
    ),
    Experiment(
        name="summarization-protocols",
        title="Figure 1 of the summaries: every protocol at every size, and what the curator sees",
        path="privada_lab.experiments.summarization.protocols:run",
        runs=10,
        quick_runs=1,
    ),
    Experiment(
        name="tables",
        title="Defaults beside trivial rivals, on ordinary tables",
        path="privada_lab.experiments.tables:run",
        runs=10,
        quick_runs=1,
        shared=True,
        settings=("half", "only", "limit", "out", "quick"),
    ),
    Experiment(
        name="transport",
        title="A target classified by a private source: accuracy, and the private distance",
        path="privada_lab.experiments.transport:run",
        runs=10,
        quick_runs=1,
        quick_share=0.55,
        optional=(
            OptionalPart(
                "transport in the clear (OTDA) and the Wasserstein distance", "ot", "privada[transport]"
            ),
            OptionalPart("ADDA and the network as target model", "torch", "privada-lab[deep]"),
        ),
    ),
    Experiment(
        name="transport-settings",
        title="Transport's settings, on pairs that no figure scores",
        path="privada_lab.experiments.transport.settings:run",
        runs=5,
        quick_runs=1,
    ),
)


def experiments() -> dict[str, Experiment]:
    """All experiments, by name."""
    return {each.name: each for each in sorted(_EXPERIMENTS, key=lambda each: each.name)}


def experiment(name: str) -> Experiment:
    """One experiment, or an `InputError` that lists them."""
    if name not in experiments():
        raise InputError(f"Expected NAME to be one of {', '.join(experiments())}, got {name!r}.")
    return experiments()[name]


def untracked(items: Iterable[Any], what: str) -> Iterable[Any]:  # noqa: ARG001 - the signature of Track
    """Show no progress."""
    return items


__all__ = ["Experiment", "OptionalPart", "Run", "Track", "experiment", "experiments", "untracked"]
