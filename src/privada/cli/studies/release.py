"""``privada release``: show and check a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import AsJson, existing_file

if TYPE_CHECKING:
    from privada.privacy.release import Release
    from privada.report.tables import Table

app = typer.Typer(no_args_is_help=True, help="See what a release says, and whether it is genuine.")


@app.callback()
def _group() -> None:
    """See what a release says, and whether it is genuine."""


@app.command("show", epilog="Example: privada release show answer.release --question asked.question")
def show_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A release file.", show_default=False)],
    question: Annotated[
        Path | None, typer.Option("--question", metavar="FILE", help="The question that it should answer.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", metavar="HEX", help="The key that should have signed it.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", min=0.01, max=0.9999, help="Confidence of the intervals.")
    ] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Explain a release in words, with an interval for every number, and check its signature.

    Ends with 5 if the file or its signature is not valid, or its key or question is another one.
    """
    from privada.exchange.files import load_question, load_release

    found = load_release(existing_file(file, "FILE"))
    asked = None if question is None else load_question(existing_file(question, "--question"))
    found.verify(public=public_key, question=asked)
    signed = f"Signed by {found.receipt.public}, line {found.receipt.index} of its ledger."
    view: list[Table | str] = [*found.explain(confidence).split("\n"), signed, *_tables(found, confidence)]
    show.emit(_plain(found, confidence), view, as_json=as_json)


def _plain(release: Release, confidence: float) -> dict[str, Any]:
    ends = release.interval(confidence)
    return {
        "kind": release.kind,
        "guarantee": release.guarantee.to_dict(),
        "stamps": list(release.stamps),
        "question": release.question,
        "receipt": release.receipt.to_dict(),
        "confidence": confidence,
        "values": {name: _plain_value(value) for name, value in release.payload.items()},
        "intervals": {name: [low.tolist(), high.tolist()] for name, (low, high) in ends.items()},
    }


def _plain_value(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _tables(release: Release, confidence: float) -> list[Table]:
    from privada.report.tables import Table

    made = []
    for name, (low, high) in release.interval(confidence).items():
        values = zip(release[name].ravel(), low.ravel(), high.ravel(), strict=True)
        rows = tuple((str(i), f"{v:.6g}", f"{a:.6g}", f"{b:.6g}") for i, (v, a, b) in enumerate(values))
        columns = ("number", "released", f"low ({confidence:.0%})", f"high ({confidence:.0%})")
        made.append(Table(title=name, columns=columns, rows=rows).shortened())
    return made


__all__ = ["app", "show_"]
