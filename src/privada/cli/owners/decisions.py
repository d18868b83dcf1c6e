"""``privada owner approve`` and ``refuse``: what a person decides, on the ledger's chain."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson, OwnerToml, existing_file, whole_digest
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.asker import Asker
    from privada.privacy.receipt import Receipt

Digest = Annotated[
    str, typer.Argument(metavar="DIGEST", help="All 64 digits of the question's digest.", show_default=False)
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who decides; by default your name on this machine."),
]
OfLearner = Annotated[
    str | None,
    typer.Option("--learner", metavar="NAME", help="Only if this learner of owner.toml asks."),
]
Reconsider = Annotated[
    bool, typer.Option("--reconsider", help="Replace an earlier decision on the same question.")
]


def approve(
    owner: OwnerToml,
    digest: Digest,
    by: By = None,
    learner: OfLearner = None,
    reconsider: Reconsider = False,
    as_json: AsJson = False,
) -> None:
    """Approve a question: the ledger records who did, and the owner answers it when it is asked next.

    Nothing is charged and no row is opened here. The first decision stands
    unless you reconsider it.
    """
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    with file.open_ledger() as ledger:
        receipt = ledger.approve(
            file.dataset,
            whole_digest("DIGEST", digest),
            by=person(by),
            asker=_learner(file, learner),
            reconsider=reconsider,
        )
    _say(receipt, "approved", as_json=as_json)


def refuse(
    owner: OwnerToml,
    digest: Digest,
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Why; the learner reads it.", show_default=False),
    ],
    by: By = None,
    learner: OfLearner = None,
    reconsider: Reconsider = False,
    as_json: AsJson = False,
) -> None:
    """Refuse a question: the ledger records who did and why, and the owner does not answer it.

    Decide by public information only, never by what the answer would be.
    """
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    with file.open_ledger() as ledger:
        receipt = ledger.reject(
            file.dataset,
            whole_digest("DIGEST", digest),
            by=person(by),
            reason=reason,
            asker=_learner(file, learner),
            reconsider=reconsider,
        )
    _say(receipt, "refused", as_json=as_json)


def person(by: str | None) -> str:
    """The name of who decides: the one that is given, else that of the user of this machine."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InputError("This machine does not know who you are: say --by NAME.") from None


def _learner(file: OwnerFile, name: str | None) -> Asker | None:
    return None if name is None else find_learner(file, name)


def find_learner(file: OwnerFile, name: str) -> Asker:
    """A learner of an owner's file, by its name."""
    from privada.privacy.asker import Asker
    from privada.privacy.names import normal_name

    for known in file.learners or ():
        if known.name == normal_name(name):
            return Asker(known.name, known.key)
    raise InputError(f"owner.toml lists no learner {name!r}.")


def _say(receipt: Receipt, what: str, *, as_json: bool) -> None:
    plain = {"question": receipt.question, "decision": what, "receipt": receipt.to_dict()}
    where = f"line {receipt.index} of {receipt.dataset!r}, {receipt.time[:19].replace('T', ' ')} UTC"
    show.emit(plain, (f"Question {receipt.question[:12]} is {what}: {where}.",), as_json=as_json)


__all__ = ["By", "approve", "find_learner", "person", "refuse"]
