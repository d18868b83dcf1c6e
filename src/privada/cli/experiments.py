"""Commands that need no owner: ``demo``, ``audit`` and ``reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada._text import quoted
from privada.cli import show
from privada.cli.options import AsJson, existing_folder
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.audit.method import QuestionAudit


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the page.")] = Path(
        "demo-out"
    ),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the HTML page, or not.")] = True,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of public randomness; the noise has none.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Run every installed method on real data, and show what can be learned from private data.

    For each method: who holds what, the guarantee, and the result, compared with the
    result without the private data and the result without privacy; then the
    ledger lines that were written, and where the page is.
    """
    from privada.methods.method import methods
    from privada.report.demo import demo_lines, demo_page, demo_plain, demo_table

    ready = [method for method in methods().values() if method.has_part("demo")]
    with show.progress(quiet=as_json) as track:
        rows = [method.demo(seed) for method in track(ready, "stories")]
    written = demo_page(rows).save(out / "index.html") if page else None
    plain = {"rows": [demo_plain(row) for row in rows], "page": None if written is None else str(written)}
    where = () if written is None else (f"Page: {written}",)
    show.emit(plain, (demo_table(rows), *demo_lines(rows), *where), as_json=as_json)


def audit(
    method: Annotated[
        str | None, typer.Argument(metavar="METHOD", help="Name of the method; without it, all of them.")
    ] = None,
    trials: Annotated[
        int, typer.Option("--trials", min=100, help="Answers to each question, on each data set.")
    ] = 20_000,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", min=0.5, max=0.999999, help="Probability with which a sound question passes."
        ),
    ] = 0.99,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the generated neighbours.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Audit a method's example questions on generated neighbouring data sets.

    A black-box auditor bounds epsilon from below by outputs alone; a replay
    auditor checks that no exact value moves by more than its declared
    sensitivity; a third tests that the noise has its declared distribution.
    Ends with 6 if one finds a violation. Passing is not a proof.
    """
    from privada.audit import audit_method
    from privada.methods.method import find_method, methods

    chosen = methods().values() if method is None else [find_method(method)]
    audits: list[QuestionAudit] = []
    for audited in chosen:
        with show.progress(quiet=as_json) as track:
            audits += audit_method(
                audited,
                trials=trials,
                confidence=confidence,
                seed=seed,
                track=lambda questions, title=f"audit {audited.name}", track=track: track(questions, title),
            )
    passed = all(result.passed for result in audits)
    plain = {"passed": passed, "audits": [result.to_dict() for result in audits]}
    failures = [str(result) for result in audits if not result.passed]
    show.emit(plain, (_tabulate_audits(audits), *failures), as_json=as_json)
    if not passed:
        raise typer.Exit(show.Exit.FOUND)


def _tabulate_audits(audits: list[QuestionAudit]) -> Any:
    from privada.report.ledger import percent
    from privada.report.tables import Table

    rows = []
    for audit in audits:
        blackbox = audit.blackbox
        bound = f"{blackbox.epsilon_lower:.4g}"
        if blackbox.epsilon_lower_gdp is not None:
            bound += f" ({blackbox.epsilon_lower_gdp:.4g} if Gaussian)"
        rows.append(
            (
                f"{audit.question} {audit.digest[:8]}",
                str(blackbox.claimed),
                f"{blackbox.epsilon_claimed:.4g} at δ = {blackbox.delta:g}",
                bound,
                str(blackbox.trials),
                f"{len(audit.replays)} pairs, {percent(audit.worst.share)} of the bound",
                f"{len(audit.laws.tests)} tests",
                "passed" if audit.passed else "FAILED",
            )
        )
    columns = ("question", "claimed", "ε claimed", "ε is at least", "trials", "replays", "noise", "verdict")
    return Table(title="Audits", columns=columns, rows=tuple(rows))


def reproduce(
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
            help="For tables and forecasts: development or final pairs. Default: final; "
            "with --quick: development.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="TEXT",
            help="For tables, papers and forecasts: only pairs, contenders, experiments or methods of this "
            "name; repeatable.",
        ),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option("--limit", metavar="SECONDS", help="For tables: give up a fit that takes longer."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute an experiment's figures, and compare each with its goal and its rival.

    Experiments are in the distribution privada-lab (the folder lab of the repository).

    With --json, one object per line: figure, value, goal (null if there is
    none), better, beside, runs and, for several runs, a 95 % interval.
    """
    from joblib import parallel_config

    from privada.report.exhibit import Figure, figures_table, write
    from privada.report.tables import Table

    experiments = _load_experiments(name)
    folder = None if data is None else existing_folder(data, "--data")
    if name is None:
        _list_experiments(experiments, folder, as_json=as_json)
        return
    experiment = experiments[name]
    count = experiment.count(runs, quick=quick)
    settings = experiment.taken(half=half, only=tuple(only or ()), limit=limit, out=out, quick=quick)
    figures, tables = [], []
    with show.progress(quiet=as_json) as track, parallel_config("loky", n_jobs=experiment.jobs(jobs)):
        for part in experiment.skipped(pictures=out is not None):
            show.note(part, label="left out")
        # Every figure is printed as soon as it is known: an experiment can take hours.
        for exhibit in experiment.run(runs=count, data=folder, track=track, **settings):
            if isinstance(exhibit, Figure):
                figures.append(exhibit)
                if as_json:
                    show.json_line(exhibit.to_dict())
            elif out is not None:
                write(exhibit, out)
            elif isinstance(exhibit, Table):
                tables.append(exhibit)
    if out is not None:
        _write_figures(figures, out)
    if not as_json:
        show.emit({}, (*tables, figures_table(experiment.title, figures)), as_json=False)


def _write_figures(figures: list[Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(show.json_text(figure.to_dict()) + "\n" for figure in figures)
    (folder / "figures.jsonl").write_text(lines, encoding="utf-8")


def _load_experiments(name: str | None) -> dict[str, Any]:
    """Load all experiments of the installed packages, and check that `name` is one of them."""
    from importlib import metadata

    entries = metadata.entry_points(group="privada.experiments")
    if not entries:
        raise InputError(
            "Experiments are in the distribution privada-lab, which is not installed: "
            "run pip install ./lab in a copy of privada's repository."
        )
    # Each package is a group, in the order of the entry points; within a group, experiments are sorted
    groups = [entry.load()() for entry in entries]
    experiments = {key: experiment for group in groups for key, experiment in sorted(group.items())}
    if name is not None and name not in experiments:
        raise InputError(f"Expected NAME to be one of {', '.join(experiments)}, got {quoted(name)}.")
    return experiments


def _list_experiments(experiments: dict[str, Any], folder: Path | None, *, as_json: bool) -> None:
    """List the experiments and, if there is a folder of data, which of the files they read are in it."""
    from privada.report.tables import Table

    table = Table(
        title="Experiments",
        columns=("name", "what it shows"),
        rows=tuple((experiment.name, experiment.title) for experiment in experiments.values()),
    )
    plain, view = {"experiments": table.to_dict()}, [table]
    if folder is not None:
        readers: dict[str, list[str]] = {}
        for experiment in experiments.values():
            for path in experiment.files:
                readers.setdefault(path, []).append(experiment.name)
        rows = tuple(
            (path, "yes" if (folder / path).exists() else "no", ", ".join(names))
            for path, names in readers.items()
        )
        files = Table(title="Data files", columns=("file", "there", "read by"), rows=rows)
        plain["files"] = files.to_dict()
        view.append(files)
    show.emit(plain, view, as_json=as_json)
