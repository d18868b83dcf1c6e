"""The application: its commands, and what is common to all of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from privada._deprecated import find_new_command
from privada.cli import audit, broker, demo, exits, learner, ledger, predict, reproduce
from privada.cli.owners import card, owner
from privada.cli.studies import (
    advise,
    answer,
    ask,
    evaluate,
    forecast,
    init,
    learn,
    price,
    question,
    release,
    run,
)


class Commands(TyperGroup):
    """The commands, in the order in which users need them; errors become a line and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Names in the order of registration."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; one that was renamed still works, with a line on stderr."""
        return super().get_command(ctx, find_new_command(cmd_name))

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with exits.report_errors(traceback=bool(ctx.params.get("traceback"))):
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from privada import __version__

        typer.echo(f"privada {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: privada demo")
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option("--traceback", help="Show the traceback of an unexpected error; it may show data."),
    ] = False,
) -> None:
    """Adapt models, samples and clusterings when some of the data cannot be shared.

    Owners answer priced questions with noise and keep a ledger; learners work
    with the releases. Start with: privada demo, or: privada init DIR.
    """


for _verb in (
    demo,
    advise,
    init,
    run,
    price,
    forecast,
    ask,
    answer,
    learn,
    evaluate,
    predict,
    reproduce,
    audit,
):
    _name = _verb.__name__.rpartition(".")[2]
    app.command(_name, epilog=f"Example: {_verb.EXAMPLE}")(_verb.command)
for _group in (owner, card, learner, ledger, question, release, broker):
    app.add_typer(_group.app, name=_group.__name__.rpartition(".")[2])

__all__ = ["Commands", "app", "root"]
