"""The command line: ``privada COMMAND``, one file per command.

Commands import what they need when they run, so that ``privada --help`` is
quick. An error is one line on stderr and an exit code (`privada.cli.exits`).
"""

from __future__ import annotations

from privada.cli.app import app


def main() -> None:
    """Run the command line: the entry point of the ``privada`` script."""
    app(prog_name="privada")


__all__ = ["app", "main"]
