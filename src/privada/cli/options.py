"""Options that several commands share, and checks that name the option that fixes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.parties.csv.dialect import Dialect

_DIGITS = 64

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The study's TOML file.", show_default=False)
]
MethodName = Annotated[str, typer.Argument(metavar="METHOD", help="Name of the method.", show_default=False)]
OwnerToml = Annotated[
    Path, typer.Argument(metavar="OWNER_TOML", help="The owner's file.", show_default=False)
]
ResultFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the result as JSON, too.")
]
PageFile = Annotated[Path | None, typer.Option("--page", metavar="FILE", help="Write an HTML page, too.")]


def _of_csv(flag: str, what: str) -> Any:
    return typer.Option(flag, metavar="TEXT", help=what, show_default=False)


CsvDelimiter = Annotated[str | None, _of_csv("--delimiter", "Between fields of CSV: ';' or a tab.")]
CsvDecimal = Annotated[str | None, _of_csv("--decimal", "Before the fraction of a number: ','.")]
CsvThousands = Annotated[str | None, _of_csv("--thousands", "Between groups of digits: '.'.")]
CsvEncoding = Annotated[str | None, _of_csv("--encoding", "Of the text: cp1252, latin-1, utf-16.")]
CsvQuote = Annotated[str | None, _of_csv("--quote", "Around fields.")]
CsvDateFormat = Annotated[str | None, _of_csv("--date-format", "Of dates: '%d.%m.%Y'.")]
ModelOut = Annotated[
    Path | None,
    typer.Option(
        "--model", metavar="FILE", help="Save the model that was learnt, for privada predict; a new file."
    ),
]
ExchangeUrl = Annotated[
    str,
    typer.Option(
        "--exchange",
        "--folder",
        metavar="URL",
        help="The exchange: a folder's path, or s3://, gs://, az://, nats:// and so on.",
        show_default=False,
    ),
]
LearnerKeyFile = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="Your key, which signs what you ask (privada learner init)."),
]


def existing_file(path: Path, what: str) -> Path:
    """The path, or an `InputError` that says what is missing."""
    if not path.is_file():
        raise InputError(f"{what}: there is no file {path}.")
    return path


def existing_folder(path: Path, what: str) -> Path:
    """The path, or an `InputError` that says what is missing."""
    if not path.is_dir():
        raise InputError(f"{what}: there is no folder {path}.")
    return path


def existing_exchange(url: str, what: str) -> str:
    """The URL, or an `InputError` if it is the path of a folder or a ``link.toml`` that is not there."""
    if "://" not in url and not Path(url).is_file():
        existing_folder(Path(url), what)
    return url


def csv_dialect(**said: str | None) -> Dialect | None:
    """The dialect that options declare; None if they are silent."""
    from privada.parties.csv.dialect import Dialect

    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    given |= {"delimiter": "\t"} if given.get("delimiter") in ("tab", "\\t") else {}
    return Dialect(**given) if given else None


def whole_digest(flag: str, text: str) -> str:
    """A whole digest in lower case: two questions can be made whose digests begin alike."""
    digits = text.lower()
    if len(digits) != _DIGITS or set(digits) - set("0123456789abcdef"):
        raise InputError(
            f"Expected {flag} to be all {_DIGITS} digits of a digest (two questions can be made "
            f"that begin alike), got {text!r:.100}."
        )
    return digits


def new_file(path: Path, what: str) -> Path:
    """The path, or an `InputError` if something is there already or its folder is not."""
    if path.exists():
        raise InputError(f"{what}: {path} exists and is not overwritten.")
    if not path.parent.is_dir():
        raise InputError(f"{what}: there is no folder {path.parent}.")
    return path


__all__ = [
    "AsJson",
    "CsvDateFormat",
    "CsvDecimal",
    "CsvDelimiter",
    "CsvEncoding",
    "CsvQuote",
    "CsvThousands",
    "ExchangeUrl",
    "LearnerKeyFile",
    "MethodName",
    "ModelOut",
    "OwnerToml",
    "PageFile",
    "ResultFile",
    "StudyFile",
    "csv_dialect",
    "existing_exchange",
    "existing_file",
    "existing_folder",
    "new_file",
    "whole_digest",
]
