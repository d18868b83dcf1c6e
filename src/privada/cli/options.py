"""Options and arguments that several commands share, and checks whose errors name the option to change."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.parties.csv_files import Dialect
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.asker import Asker

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The study's TOML file.", show_default=False)
]
MethodName = Annotated[str, typer.Argument(metavar="METHOD", help="Name of the method.", show_default=False)]
OwnerToml = Annotated[
    Path, typer.Argument(metavar="OWNER_TOML", help="The owner's file.", show_default=False)
]
ResultFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Also write the result to this file, as JSON.")
]
PageFile = Annotated[
    Path | None, typer.Option("--page", metavar="FILE", help="Also write the result as an HTML page.")
]
ModelOut = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FILE",
        help="Save the fitted model to this new file, for use with privada predict.",
    ),
]
ExchangeUrl = Annotated[
    str,
    typer.Option(
        "--exchange",
        "--folder",
        metavar="URL",
        help="The exchange: a folder's path, or a URL such as s3://, gs://, az:// or nats://.",
        show_default=False,
    ),
]
LearnerKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="Your key, which signs your questions (privada learner init)."
    ),
]
DecidedBy = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who decides; by default your name on this machine."),
]
ProtectKey = Annotated[
    bool,
    typer.Option(
        "--passphrase",
        help="Protect the key. The passphrase is asked for twice, or taken from PRIVADA_KEY_PASSPHRASE.",
    ),
]


def _csv_option(flag: str, description: str) -> Any:
    return typer.Option(flag, metavar="TEXT", help=description, show_default=False)


CsvDelimiter = Annotated[
    str | None, _csv_option("--delimiter", "What separates the fields of the CSV file: ';' or tab.")
]
CsvDecimal = Annotated[str | None, _csv_option("--decimal", "The decimal mark: ','.")]
CsvThousands = Annotated[str | None, _csv_option("--thousands", "What separates groups of digits: '.'.")]
CsvEncoding = Annotated[
    str | None, _csv_option("--encoding", "Encoding of the text: cp1252, latin-1, utf-16.")
]
CsvQuote = Annotated[str | None, _csv_option("--quote", "The quotation mark around fields.")]
CsvDateFormat = Annotated[str | None, _csv_option("--date-format", "How dates are written: '%d.%m.%Y'.")]


def existing_file(path: Path, what: str) -> Path:
    """Return the path, or raise an `InputError` that names the argument `what`."""
    if not path.is_file():
        raise InputError(f"{what}: there is no file {path}.")
    return path


def existing_folder(path: Path, what: str) -> Path:
    """Return the path, or raise an `InputError` that names the argument `what`."""
    if not path.is_dir():
        raise InputError(f"{what}: there is no folder {path}.")
    return path


def existing_exchange(url: str, what: str) -> str:
    """Return the URL; if it is a path, check that it is a folder or a ``link.toml`` that exists."""
    if "://" not in url and not Path(url).is_file():
        existing_folder(Path(url), what)
    return url


def new_file(path: Path, what: str) -> Path:
    """Return the path of a file that does not exist yet, in a folder that does."""
    if path.exists():
        raise InputError(f"{what}: {path} exists and is not overwritten.")
    if not path.parent.is_dir():
        raise InputError(f"{what}: there is no folder {path.parent}.")
    return path


def read_owner_file(path: Path) -> OwnerFile:
    """Read the owner.toml that a command was given as its argument."""
    from privada.parties.owner_file import OwnerFile

    return OwnerFile.read(existing_file(path, "OWNER_TOML"))


def csv_dialect(**options: str | None) -> Dialect | None:
    """Make the dialect that the CSV options declare; None if no option was used."""
    from privada.parties.csv_files import Dialect

    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    # A shell hardly passes a tab itself
    if settings.get("delimiter") in ("tab", "\\t"):
        settings["delimiter"] = "\t"
    return Dialect(**settings) if settings else None


def whole_digest(flag: str, text: str) -> str:
    """Return a complete digest in lower case.

    A prefix is not enough: somebody can make two questions whose digests begin alike.
    """
    digits = text.lower()
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise InputError(
            f"Expected {flag} to be all 64 digits of a digest (two questions can be made "
            f"that begin alike), got {text!r:.100}."
        )
    return digits


def decider_name(by: str | None) -> str:
    """Return the name of the person who decides: ``--by``, or else the user of this machine."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InputError("This machine does not know who you are: say --by NAME.") from None


def find_learner(file: OwnerFile, name: str) -> Asker:
    """Find a learner of an owner's file by its name."""
    from privada.privacy.asker import Asker, normal_name

    for learner in file.learners or ():
        if learner.name == normal_name(name):
            return Asker(learner.name, learner.key)
    raise InputError(f"owner.toml lists no learner {name!r}.")
