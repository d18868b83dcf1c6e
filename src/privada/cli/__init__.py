"""The command line, ``privada COMMAND``: its commands, and what is common to all of them.

Commands import what they need when they run, so that ``privada --help`` is
quick. An error is one line on stderr and an exit code (`privada.cli.show.Exit`).
"""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from privada._deprecated import find_new_command
from privada.cli import answer, broker, experiments, learner, ledger, owner, price, show, study


class Commands(TyperGroup):
    """The commands, in the order in which users need them; errors become a line and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Names in the order of registration."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command by its name; one that was renamed still works, with a warning."""
        return super().get_command(ctx, find_new_command(cmd_name))

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with show.report_errors(traceback=bool(ctx.params.get("traceback"))):
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


def print_version(requested: bool) -> None:
    """Print the version and end, if ``--version`` was given."""
    if requested:
        from privada import __version__

        typer.echo(f"privada {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: privada demo")
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback", help="Show the traceback of an unexpected error; it may contain private data."
        ),
    ] = False,
) -> None:
    """Adapt models, samples and clusterings when some of the data cannot be shared.

    Owners answer priced questions with noise and keep a ledger; learners work
    with the releases. Start with: privada demo, or: privada init DIR.
    """


# The order of registration is the order of the help page.
for _name, _command, _example in (
    ("demo", experiments.demo, "privada demo --out demo-out"),
    ("advise", price.advise, "privada advise --want model --private target --yours labelled"),
    ("init", study.init, "privada init my-study --method reweighting"),
    ("run", study.run, "privada run study.toml --page result.html"),
    ("price", price.price, "privada price study.toml"),
    ("forecast", price.forecast, "privada forecast study.toml"),
    ("ask", study.ask, "privada ask cells study.toml --exchange exchange"),
    ("answer", answer.answer, "privada answer owner.toml --exchange exchange --name clinic"),
    ("learn", study.learn, "privada learn cells study.toml --exchange exchange --out result.json"),
    ("evaluate", study.evaluate, "privada evaluate model.onnx study.toml --bins 10"),
    ("predict", learner.predict, "privada predict model.privada rows.csv --out predictions.csv"),
    ("reproduce", experiments.reproduce, "privada reproduce cells --quick"),
    ("audit", experiments.audit, "privada audit cells --trials 5000"),
):
    app.command(_name, epilog=f"Example: {_example}")(_command)
for _name, _group in (
    ("owner", owner.app),
    ("card", learner.card_app),
    ("learner", learner.app),
    ("ledger", ledger.app),
    ("question", learner.question_app),
    ("release", learner.release_app),
    ("broker", broker.app),
):
    app.add_typer(_group, name=_name)


def _join_lines(group: typer.Typer) -> None:
    """Let the help of all commands be wrapped at the terminal's width, not where docstrings' lines end."""
    for command in group.registered_commands:
        paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "").split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.splitlines()) for paragraph in paragraphs)
    for below in group.registered_groups:
        if below.typer_instance is not None:
            _join_lines(below.typer_instance)


_join_lines(app)


def main() -> None:
    """Run the command line: the entry point of the ``privada`` script."""
    app(prog_name="privada")


__all__ = ["app", "main"]
