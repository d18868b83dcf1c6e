"""Write ``docs/reference/files.md``: every key of study files, owner files and the console's file.

It comes from the docstrings of their readers.

``make reference`` runs this; a test checks that the page is up to date, and that no reader knows a key that
its docstring does not name.
"""

from __future__ import annotations

import inspect
import textwrap
from importlib import import_module
from pathlib import Path

from privada.methods.method import methods

HEAD = """\
# Files

A learner writes a study file, an owner an `owner.toml`, and a `console.toml` for its console.
This page lists every key.
It is generated: `make reference`.
`privada init DIR --method NAME` writes a complete, commented example of both.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, _section("Study files", "privada.studies.study")]
    for name, card in methods().items():
        parts.append(f"### `[method]` of {name}\n\n{card.title}.\n\n```toml\n{card.describe_study()}\n```\n")
    parts.append(_section("Owner files", "privada.parties.owner_file"))
    learners = _section(
        "`[[learners]]` of an owner file", "privada.parties.permissions:KnownLearners", level=3
    )
    console = _section("The console's file", "privada.service.console.oidc:OidcSettings")
    return "\n".join([*parts, learners, console])


def _section(title: str, module: str, *, level: int = 2) -> str:
    """Title, the example in the docstring of a module or of ``module:Class``, and what it says after it."""
    place, _, name = module.partition(":")
    documented = getattr(import_module(place), name) if name else import_module(place)
    text = inspect.cleandoc(documented.__doc__ or "").partition("\nParameters\n---")[0]
    first, _, rest = text.partition("::\n\n")
    block, after = _split(rest)
    lead = " ".join(first.split()).replace("``", "`")
    return (
        f"{'#' * level} {title}\n\n{lead}\n\n```toml\n{block}\n```\n\n{after.replace('``', '`')}".rstrip()
        + "\n"
    )


def _split(rest: str) -> tuple[str, str]:
    """The indented block, and the text that follows it."""
    lines = rest.split("\n")
    end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end])).strip(), "\n".join(lines[end:]).strip()


if __name__ == "__main__":
    Path(__file__).with_name("reference").joinpath("files.md").write_text(page(), encoding="utf-8")
