"""``privada evaluate``: how well a model does at a study's owner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import AsJson, PageFile, ResultFile, StudyFile, existing_file

EXAMPLE = "privada evaluate model.onnx study.toml --bins 10"
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="The model: ONNX, or JSON of one of our own forms.", show_default=False
    ),
]
OwnerName = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Which of the study's owners; the first.")
]
Bins = Annotated[
    int | None, typer.Option("--bins", metavar="N", help="Bins of scores; 1 asks for predictions alone.")
]
Positive = Annotated[
    str | None, typer.Option("--positive", metavar="CLASS", help="The class whose score is binned.")
]
Largest = Annotated[float | None, typer.Option("--largest", metavar="ERROR", help="Bound of squared errors.")]


def command(
    model: ModelFile,
    study: StudyFile,
    owner: OwnerName = None,
    bins: Bins = None,
    positive: Positive = None,
    largest: Largest = None,
    out: ResultFile = None,
    page: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Tell how well a model does on an owner's rows, with intervals for noise and sampling.

    The study says who is asked and for how much; its method is not looked at. The
    same model again gets the same answer and is not charged again. Ends with 3 if the
    owner refuses; then nothing was charged.
    """
    from privada.cli.studies.outcome import finish, prepare
    from privada.studies.outcome import run_study
    from privada.studies.study import Study

    asked: dict[str, Any] = {"owner": owner, "bins": bins, "positive": positive, "largest": largest}
    settings = {name: value for name, value in asked.items() if value is not None}
    path = existing_file(model, "MODEL").resolve()
    settings |= {"name": "evaluation", "model": str(path)}
    read = Study.read(existing_file(study, "STUDY"), method=settings)
    prepare(out, page)
    with show.working(f"Evaluating {model.name}"):
        outcome = run_study(read)
    finish(outcome, out=out, page=page, as_json=as_json)


__all__ = ["EXAMPLE", "command"]
