"""``privada owner console-user``: who may sign in to the console."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privada.cli import show
from privada.cli.options import AsJson, OwnerToml, existing_file

EXAMPLE = "privada owner console-user clinic/owner.toml 'Grace Hopper' --role approver"
VARIABLE = "PRIVADA_CONSOLE_PASSPHRASE"


def command(
    owner: OwnerToml,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="As the ledger will name who decides.", show_default=False)
    ],
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="viewer, approver or administrator."),
    ] = "viewer",
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="By default console-users.json beside owner.toml."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a person sign in to the console, or change their role and passphrase.

    The passphrase is asked for twice, or taken from PRIVADA_CONSOLE_PASSPHRASE;
    only its scrypt hash is kept. Viewers see, approvers decide.
    """
    from privada.privacy.keys.passphrase import choose_passphrase
    from privada.service.console.users import FILE, User, Users

    path = users or existing_file(owner, "OWNER_TOML").with_name(FILE)
    user = User.made(name, role, choose_passphrase(VARIABLE))
    Users(path).put(user)
    plain = {"name": user.name, "role": user.role, "users": str(path)}
    show.emit(plain, (f"{user.name} may sign in as {user.role}: {path}.",), as_json=as_json)


__all__ = ["EXAMPLE", "command"]
