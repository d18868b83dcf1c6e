"""``privada demo``: every method on real data, in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson

EXAMPLE = "privada demo --out demo-out"


def command(
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

    For each method: who holds what, the guarantee, and the result, beside the
    result without the private data and the result without privacy; then the
    ledger lines that were written, and where the page is.
    """
    from privada.methods.registry import methods
    from privada.report.demo import demo_lines, demo_page, demo_plain, demo_table

    ready = [method for method in methods().values() if method.demo_path is not None]
    with show.progress(quiet=as_json) as track:
        rows = [method.demo(seed) for method in track(ready, "stories")]
    written = demo_page(rows).save(out / "index.html") if page else None
    plain = {"rows": [demo_plain(row) for row in rows], "page": None if written is None else str(written)}
    where = () if written is None else (f"Page: {written}",)
    show.emit(plain, (demo_table(rows), *demo_lines(rows), *where), as_json=as_json)


__all__ = ["EXAMPLE", "command"]
