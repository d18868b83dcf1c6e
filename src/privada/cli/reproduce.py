"""``privada reproduce``: the figures of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privada._text import quoted
from privada.cli import show
from privada.cli.options import AsJson, existing_folder
from privada.exceptions import InputError

EXAMPLE = "privada reproduce cells --quick"


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The experiment; without it, all are listed.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs; the output says so.")] = False,
    runs: Annotated[
        int | None,
        typer.Option("--runs", metavar="N", help="How many runs; by default the experiment's own number."),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", metavar="N", help="Number of processes, for experiments that can use several."
        ),
    ] = 1,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", envvar="PRIVADA_DATA", metavar="DIR", help="Local copies of real data, if needed."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write figures (JSON), tables (CSV) and pictures (SVG) into this folder.",
        ),
    ] = None,
    half: Annotated[
        str | None,
        typer.Option(
            "--half",
            metavar="HALF",
            help="Of tables and forecasts: development or final pairs; final, but of a quick look.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="TEXT",
            help="Of tables, papers and forecasts: pairs, contenders, experiments or methods of this name.",
        ),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option("--limit", metavar="SECONDS", help="Of tables: give up a fit that takes longer."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute an experiment's figures, each beside its goal and what it is compared with.

    Experiments are in the distribution privada-lab (the folder lab of the repository).

    With --json, one object per line: figure, value, goal (null if there is
    none), better, beside, runs and, for several runs, a 95 % interval.
    """
    from joblib import parallel_config

    from privada.report.exhibit import write
    from privada.report.figure import Figure, figures_table
    from privada.report.tables import Table

    if name is None:
        _list(data, as_json=as_json)
        return
    found = _experiment(name)
    count = found.count(runs, quick=quick)
    settings = found.taken(half=half, only=tuple(only or ()), limit=limit, out=out, quick=quick)
    folder = None if data is None else existing_folder(data, "--data")
    with show.progress(quiet=as_json) as track, parallel_config("loky", n_jobs=found.jobs(jobs)):
        figures, tables = [], []
        for part in found.skipped(pictures=out is not None):
            show.note(part, label="left out")
        for item in found.run(runs=count, data=folder, track=track, **settings):
            if isinstance(item, Figure):
                figures.append(item)
                if as_json:
                    show.json_line(item.to_dict())
            elif out is not None:
                write(item, out)
            elif isinstance(item, Table):
                tables.append(item)
    if out is not None:
        _keep(figures, out)
    if not as_json:
        show.emit({}, (*tables, figures_table(found.title, figures)), as_json=False)


def _experiments() -> dict[str, Any]:
    """All experiments of the installed packages, by name (entry points ``privada.experiments``)."""
    from importlib import metadata

    entries = metadata.entry_points(group="privada.experiments")
    if not entries:
        raise InputError(
            "Experiments are in the distribution privada-lab, which is not installed: "
            "run pip install ./lab in a copy of privada's repository."
        )
    groups = [entry.load()() for entry in entries]
    return {name: each for group in groups for name, each in sorted(group.items())}


def _experiment(name: str) -> Any:
    """One experiment, or an `InputError` that lists them."""
    known = _experiments()
    if name not in known:
        raise InputError(f"Expected NAME to be one of {', '.join(known)}, got {quoted(name)}.")
    return known[name]


def _keep(figures: list[Any], folder: Path) -> None:
    """Write the figures as they are printed with --json."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(show.json_text(figure.to_dict()) + "\n" for figure in figures)
    (folder / "figures.jsonl").write_text(lines, encoding="utf-8")


def _list(data: Path | None, *, as_json: bool) -> None:
    from privada.report.tables import Table

    rows = tuple((each.name, each.title) for each in _experiments().values())
    table = Table(title="Experiments", columns=("name", "what it shows"), rows=rows)
    plain, shown = {"experiments": table.to_dict()}, [table]
    if data is not None:
        files = _files_there(existing_folder(data, "--data"))
        plain["files"] = files.to_dict()
        shown.append(files)
    show.emit(plain, tuple(shown), as_json=as_json)


def _files_there(folder: Path) -> Any:
    """Which of the files that experiments read are in a folder."""
    from privada.report.tables import Table

    readers: dict[str, list[str]] = {}
    for each in _experiments().values():
        for path in each.files:
            readers.setdefault(path, []).append(each.name)
    rows = tuple(
        (path, "yes" if (folder / path).exists() else "no", ", ".join(names))
        for path, names in readers.items()
    )
    return Table(title="Data files", columns=("file", "there", "read by"), rows=rows)


__all__ = ["EXAMPLE", "command"]
