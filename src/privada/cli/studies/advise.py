"""``privada advise``: which method fits what you hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson
from privada.exceptions import InputError
from privada.methods.situation import SIDES, WANTS, YOURS

EXAMPLE = "privada advise --want model --private target --yours labelled"


def command(
    want: Annotated[
        str, typer.Option(metavar="|".join(WANTS), help="What you want.", show_default=False)
    ] = "",
    private: Annotated[
        str,
        typer.Option(metavar="|".join(SIDES), help="For a model: what cannot be shared.", show_default=False),
    ] = "",
    yours: Annotated[
        str, typer.Option(metavar="|".join(YOURS), help="For a model: what you hold.", show_default=False)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Say which method fits what you hold and want, and why. On a terminal it asks what you leave out."""
    want = _choose("want", want, WANTS)
    if want == "model":
        private = _choose("private", private, SIDES)
        yours = _choose("yours", yours, YOURS) if private == "target" else ""
    found = _fitting(want, private, yours)
    lines = [line for name, because in found.items() for line in _advice(name, because)]
    show.emit(
        {"methods": [{"name": name, "because": why} for name, why in found.items()]}, lines, as_json=as_json
    )


def _choose(name: str, given: str, options: Mapping[str, str]) -> str:
    """What was given, or asked for on a terminal."""
    from privada import _check

    if given:
        return _check.one_of(tuple(options), **{name: given})
    if not sys.stdin.isatty():
        raise InputError(f"--{name}: say one of {', '.join(options)}.")
    for number, (key, text) in enumerate(options.items(), start=1):
        typer.echo(f"{number}. {key}: {text}", err=True)
    picked = int(typer.prompt(f"--{name}", type=int, err=True))
    keys = tuple(options)
    if not 1 <= picked <= len(keys):
        raise InputError(f"Expected a number from 1 to {len(keys)}, got {picked}.")
    return keys[picked - 1]


def _fitting(want: str, private: str, yours: str) -> dict[str, str]:
    """Names of the methods that fit, and why."""
    from privada.methods.registry import methods

    cards = {name: card.situation for name, card in methods().items() if card.situation is not None}
    found = {
        name: situation.because
        for name, situation in cards.items()
        if situation.fits(want=want, private=private, yours=yours)
    }
    if not found:
        raise InputError("No installed method fits; privada advise --help lists what can be said.")
    return found


def _advice(name: str, because: str) -> list[str]:
    from privada.methods.registry import method

    start = f"An example to change: privada init DIR --method {name}"
    if method(name).template_path is None:
        start = f"Its page: docs/methods/{name}.md"
    return [f"{name}: {because}", f"  {start}"]


__all__ = ["EXAMPLE", "command"]
