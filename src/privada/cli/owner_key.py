"""``privada owner key``: the passphrase of an owner's key."""

from __future__ import annotations

from typing import Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson, OwnerToml, existing_file

app = typer.Typer(no_args_is_help=True, help="Protect an owner's key.")


@app.command("passphrase", epilog="Example: privada owner key passphrase clinic/owner.toml")
def passphrase(
    owner: OwnerToml,
    remove: Annotated[bool, typer.Option("--remove", help="Keep the key without a passphrase.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set, change or remove the passphrase of an owner's key. The key itself stays the same.

    The old passphrase is taken from PRIVADA_KEY_PASSPHRASE, the new one from
    PRIVADA_NEW_KEY_PASSPHRASE; what is not set is asked for on the terminal.
    Backups of the key's file keep the passphrase that they had.
    """
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.passphrase import choose_passphrase
    from privada.privacy.receipt import OwnerKey

    path = OwnerFile.read(existing_file(owner, "OWNER_TOML")).key
    key = OwnerKey.load(path)
    key.change_passphrase(path, passphrase=None if remove else choose_passphrase())
    plain = {"written": str(path), "public_key": key.public, "protected": not remove}
    said = "without a passphrase; its file's mode alone protects it" if remove else "under the new passphrase"
    show.emit(plain, (f"Wrote {path}, {said}.",), as_json=as_json)


__all__ = ["app", "passphrase"]
