"""The reference of the command line, from the commands themselves.

``python -m privada.cli.reference > docs/reference/cli.md``
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from privada.cli import exits
from privada.cli.app import app

_HEAD = """\
# Command line

Made by `python -m privada.cli.reference`; do not edit.

Results go to stdout, as tables or with `--json` as JSON; notes, warnings, errors and progress go to stderr.
An error is one line that names the flag or the key that fixes it. `privada --version` prints the version;
`privada --traceback VERB` shows where an unexpected error came from (its message may hold data).
"""


def root_command() -> Any:
    """The root of the command tree."""
    from typer.main import get_command

    return get_command(app)


def commands(command: Any = None, path: tuple[str, ...] = ("privada",)) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    command = root_command() if command is None else command
    children = getattr(command, "commands", None)
    if children is None:
        yield " ".join(path), command
    else:
        for name, child in children.items():
            yield from commands(child, (*path, name))


def example(command: Any) -> str:
    """The example in a command's help."""
    return str(command.epilog or "").removeprefix("Example: ")


def reference() -> str:
    """The whole page."""
    parts = [_HEAD, _exit_codes(), *(_section(name, command) for name, command in commands())]
    return "\n".join(parts)


def _exit_codes() -> str:
    rows = [line for line in (exits.__doc__ or "").splitlines() if line[:1].isdigit()]
    body = "\n".join(f"| {row[0]} | {row[1:].strip()} |" for row in rows)
    return f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{body}\n"


def _section(name: str, command: Any) -> str:
    text = inspect.cleandoc(command.help or "")
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    words = [param.metavar if param.required else f"[{param.metavar}]" for param in arguments]
    words += [f"{param.opts[0]} {param.metavar}" for param in options if param.required]
    usage = " ".join([name, *words, "[OPTIONS]"])
    rows = [*(_argument(param) for param in arguments), *(_option(param) for param in options)]
    table = "\n".join(("| | |", "| --- | --- |", *rows))
    return f"## {name}\n\n{text}\n\n```\n{usage}\n```\n\n{table}\n\n```bash\n{example(command)}\n```\n"


def _argument(param: Any) -> str:
    return f"| `{param.metavar}` | {param.help or ''} |".replace("QUESTION|STUDY", "QUESTION\\|STUDY")


def _option(param: Any) -> str:
    value = f" {param.metavar}" if param.metavar else ""
    names = ", ".join(f"`{name}{value}`" for name in (*param.opts, *param.secondary_opts))
    silent = param.default is None or isinstance(param.default, bool) or param.required
    default = "" if silent else f" Default: `{param.default}`."
    required = " Required." if param.required else ""
    return f"| {names} | {param.help or ''}{default}{required} |"


if __name__ == "__main__":
    sys.stdout.write(reference())

__all__ = ["commands", "example", "reference", "root_command"]
