"""``privada owner key``: protect an owner's key, and let a new one take over."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson, OwnerToml, existing_file
from privada.exceptions import LedgerError

if TYPE_CHECKING:
    from privada.privacy.ledger.rotation import HandOver
    from privada.privacy.receipt import OwnerKey

app = typer.Typer(no_args_is_help=True, help="Protect an owner's key, and let a new one take over.")


@app.command("passphrase", epilog="Example: privada owner key passphrase clinic/owner.toml")
def passphrase(
    owner: OwnerToml,
    remove: Annotated[bool, typer.Option("--remove", help="Keep the key without a passphrase.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set, change or remove the passphrase of an owner's key. The key itself stays the same.

    The old passphrase is taken from PRIVADA_KEY_PASSPHRASE, the new one from
    PRIVADA_NEW_KEY_PASSPHRASE; if one is not set, you are asked on the terminal.
    Backups of the key's file keep the passphrase that they had.
    """
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.keys.passphrase import choose_passphrase
    from privada.privacy.receipt import OwnerKey

    path = OwnerFile.read(existing_file(owner, "OWNER_TOML")).key
    key = OwnerKey.load(path)
    key.change_passphrase(path, passphrase=None if remove else choose_passphrase())
    plain = {"written": str(path), "public_key": key.public, "protected": not remove}
    said = "without a passphrase; its file's mode alone protects it" if remove else "under the new passphrase"
    show.emit(plain, (f"Wrote {path}, {said}.",), as_json=as_json)


@app.command("rotate", epilog="Example: privada owner key rotate clinic/owner.toml")
def rotate(
    owner: OwnerToml,
    protect: Annotated[
        bool,
        typer.Option(
            "--passphrase",
            help="Protect the new key: asked for twice, or taken from PRIVADA_NEW_KEY_PASSPHRASE. "
            "Always done if the old key is protected.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replace the key: a new key takes over the ledger, and the old one signs for it.

    Writes a hand-over file for all who know the old public key; they check it
    with privada owner key check. The old key's file is kept under another name,
    for older backups; delete it when they are gone. If the command is
    interrupted, run it again. It needs the old key: a lost key is a lost
    ledger.
    """
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.ledger.heads import heads_of
    from privada.privacy.receipt import OwnerKey

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    old = OwnerKey.load(file.key)
    draft = file.key.with_name(f"{file.key.name}.new")
    began = draft.exists()  # by an earlier run that was interrupted
    new = _next_key(file.key, draft, protect=protect)
    made = _hand_over(file.ledger, old, new, began=began, heads=heads_of(file.ledger, file.key))
    kept = file.key.with_name(f"{file.key.name}.{old.public[:12]}")
    _keep(file.key, kept)
    draft.replace(file.key)
    told = made.save(owner.parent / f"handover-{new.public[:12]}.json")
    plain = made.to_dict() | {"written": [str(file.key), str(told)], "kept": str(kept)}
    view = (
        f"The key {made.new} took over from {made.old}.",
        f"Wrote {file.key}; the old key is kept in {kept}.",
        f"Wrote {told}: give it, and the new schema (privada owner schema), to those who know the old key.",
    )
    show.emit(plain, view, as_json=as_json)


def _next_key(path: Path, draft: Path, *, protect: bool) -> OwnerKey:
    """The key that takes over: the one that an interrupted run made, or a new one in a file of its own."""
    from privada.privacy.keys import OwnerKey, is_protected
    from privada.privacy.keys.passphrase import NEW_VARIABLE, choose_passphrase

    if draft.exists():
        return OwnerKey.load(draft, passphrase=os.environ.get(NEW_VARIABLE))
    words = choose_passphrase() if protect or is_protected(path.read_bytes()) else None
    key = OwnerKey.generate()
    key.save(draft, passphrase=words)
    return key


def _hand_over(place: str, old: OwnerKey, new: OwnerKey, *, began: bool, heads: Path | None) -> HandOver:
    from privada.privacy.ledger import Ledger

    if began:
        with suppress(LedgerError), Ledger.open(place, new, create=False, heads=heads) as ledger:
            return ledger.hand_overs()[-1]
    with Ledger.open(place, old, create=False, heads=heads) as ledger:
        return ledger.rotate(new)


def _keep(key: Path, kept: Path) -> None:
    """Give the old key's file a second name: at any moment one of the two is there, and whole."""
    try:
        os.link(key, kept)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        part = kept.with_name(f"{kept.name}.partial")
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        part.write_bytes(key.read_bytes())
        part.replace(kept)


@app.command("check", epilog="Example: privada owner key check handover.json --public-key 6f1e...")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The hand-over file.", show_default=False)],
    public_key: Annotated[
        str,
        typer.Option(
            "--public-key", metavar="HEX", help="The owner's key that you know.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check a hand-over file that an owner gave you: the key that you know names the new one.

    Ends with 5 if it is not valid. It proves that a holder of the old key handed
    over; if that key was stolen, ask the owner through another channel.
    """
    from privada.privacy.ledger.rotation import HandOver

    made = HandOver.load(existing_file(file, "FILE"))
    made.verify(old=public_key)
    said = f"The key {made.old} handed over to {made.new} at {made.time}."
    show.emit(made.to_dict(), (said,), as_json=as_json)


__all__ = ["app", "check", "passphrase", "rotate"]
