"""``privada learner``: a learner's key, and the card by which owners know it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson, existing_folder, new_file
from privada.exceptions import InputError

app = typer.Typer(no_args_is_help=True, help="Make a learner's key, and the card by which owners know it.")


@app.callback()
def group() -> None:
    """Make a learner's key, and the card by which owners know it."""


@app.command("init", epilog="Example: privada learner init alice --organisation 'University of Somewhere'")
def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The learner's name, as in alice.", show_default=False)
    ],
    organisation: Annotated[
        str, typer.Option("--organisation", metavar="TEXT", help="Where the learner is.")
    ] = "",
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where the two files are written.")
    ] = Path(),
    passphrase: Annotated[
        bool,
        typer.Option(
            "--passphrase", help="Protect the key: asked for twice, or taken from PRIVADA_KEY_PASSPHRASE."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write NAME.key, which signs what the learner asks, and NAME.toml, the card for owners.

    Keep the key; give the card to every owner that should answer. An owner
    lists it among the learners of its owner.toml.
    """
    from privada.parties.permissions import LearnerCard
    from privada.privacy.keys import LearnerKey
    from privada.privacy.keys.passphrase import VARIABLE, choose_passphrase

    if not re.fullmatch(r"\w[\w .-]{0,63}", name):
        raise InputError(
            f"Expected NAME to be letters, digits, spaces, dots and dashes, at most 64, got {name!r:.80}."
        )
    existing_folder(folder, "--folder")
    paths = [new_file(folder / f"{name}.{part}", "NAME") for part in ("key", "toml")]
    key = LearnerKey.generate()
    card = LearnerCard(name=name, organisation=organisation, public_key=key.public)
    key.save(paths[0], passphrase=choose_passphrase(VARIABLE) if passphrase else None)
    paths[1].write_text(card.to_toml(), encoding="utf-8")
    plain = {"written": [str(path) for path in paths], "public_key": key.public}
    show.emit(plain, (*(f"Wrote {path}" for path in paths), *_advice(name, key.public)), as_json=as_json)


def _advice(name: str, public: str) -> tuple[str, ...]:
    return (
        "Keep the key to yourself. Owners who should answer add this to owner.toml, with their limits:",
        "",
        "[[learners]]",
        f'name = "{name}"',
        f'key = "{public}"',
    )


__all__ = ["app", "init"]
