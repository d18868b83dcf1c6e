"""``privada owner allow``: change what a learner may have, on the ledger's chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson, OwnerToml, existing_file
from privada.cli.owners.decisions import By, find_learner, person
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.asker import Asker
    from privada.privacy.guarantee import Guarantee
    from privada.privacy.ledger import Ledger

EXAMPLE = "privada owner allow clinic/owner.toml alice --epsilon 0.5 --by 'Dr Who'"


def command(
    owner: OwnerToml,
    learner: Annotated[
        str, typer.Argument(metavar="LEARNER", help="A learner of owner.toml.", show_default=False)
    ],
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="At most this ε.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="With ε; by default the budget's δ.")] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="At most this ρ.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="The whole budget.")] = False,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Change a learner's allowance: the ledger records who did, from what to what, and when.

    It counts at once, also for an owner that is serving. What the learner has used stays used. The
    allowance in owner.toml is what you declared; it counts again when you change it there.
    """
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    asker = find_learner(file, learner)
    most = _most(file, epsilon, delta, rho, whole=whole)
    with file.open_ledger() as ledger:
        _declare(file, ledger, asker)  # first, or the file would seem to be edited when it is read next
        receipt = ledger.allow(file.dataset, learner=asker.learner, key=asker.key, most=most, by=person(by))
    plain = {
        "learner": asker.learner,
        "allowance": None if most is None else most.to_dict(),
        "receipt": receipt.to_dict(),
    }
    where = f"line {receipt.index} of {receipt.dataset!r}, {receipt.time[:19].replace('T', ' ')} UTC"
    said = f"{asker.learner!r} may have {most or 'the whole budget'}: {where}."
    show.emit(plain, (said,), as_json=as_json)


def _declare(file: OwnerFile, ledger: Ledger, asker: Asker) -> None:
    """Record what the file declares for a learner, as an owner does that opens."""
    from privada.parties.permissions import KnownLearners

    known = KnownLearners(file.learners or (), budget=ledger.budget(file.dataset))
    ledger.declare(file.dataset, next(each for each in known.allowances if each.key == asker.key))


def _most(
    file: OwnerFile, epsilon: float | None, delta: float | None, rho: float | None, *, whole: bool
) -> Guarantee | None:
    from privada.parties.permissions import part_of

    stated = any(number is not None for number in (epsilon, delta, rho))
    if whole == stated:
        raise InputError("Say either --whole or how much: --epsilon (with --delta) or --rho.")
    return None if whole else part_of(file.budget, epsilon=epsilon, delta=delta, rho=rho)


__all__ = ["EXAMPLE", "command"]
