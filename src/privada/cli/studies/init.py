"""``privada init``: an example study that is ready to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson
from privada.exceptions import InputError

EXAMPLE = "privada init my-study --method reweighting"


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.", show_default=False)],
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="The method that the study uses; privada advise helps to choose."),
    ] = "reweighting",
    as_json: AsJson = False,
) -> None:
    """Write an example study of a method: commented, with generated rows, ready to run.

    Read the README.md in it, then: privada run DIR/study.toml
    """
    from privada.studies.example import write_example

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"DIR: {folder} exists and is not empty; name a new folder.")
    written = write_example(folder, name=method)
    lines = (*(f"Wrote {path}" for path in written), f"Next: privada run {folder / 'study.toml'}")
    show.emit({"written": [str(path) for path in written]}, lines, as_json=as_json)


__all__ = ["EXAMPLE", "command"]
