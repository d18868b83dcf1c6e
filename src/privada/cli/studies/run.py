"""``privada run``: a whole study in one process."""

from __future__ import annotations

from privada.cli import show
from privada.cli.options import AsJson, PageFile, ResultFile, StudyFile, existing_file

EXAMPLE = "privada run study.toml --page result.html"


def command(
    study: StudyFile,
    out: ResultFile = None,
    page: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Run a study in one process: ask, charge, answer, learn.

    Every owner's file must be available. The same study again gets the same
    answers and is not charged again; another seed makes other questions. Ends
    with 3 if an owner refuses; then nothing was charged for that question, and
    nothing at all if all rounds together exceed a budget or a policy.
    """
    from privada.cli.studies.outcome import finish, prepare
    from privada.studies.outcome import run_study
    from privada.studies.study import Study

    read = Study.read(existing_file(study, "STUDY"))
    prepare(out, page)
    with show.working(f"Running {read.title}"):
        outcome = run_study(read)
    finish(outcome, out=out, page=page, as_json=as_json)


__all__ = ["EXAMPLE", "command"]
