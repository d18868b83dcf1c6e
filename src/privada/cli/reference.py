"""The reference of the command line, from the commands themselves.

``python -m privada.cli.reference > docs/reference/cli.md``
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from privada.cli import app, show

_HEAD = """\
# Command line

Made by `python -m privada.cli.reference`; do not edit.

Results go to stdout, as tables or with `--json` as JSON; notes, warnings, errors and progress go to stderr.
An error is one line that names the flag or the key that fixes it. `privada --version` prints the version;
`privada --traceback VERB` shows where an unexpected error came from (its message may contain private data).
"""


def root_command() -> Any:
    """Return the root of the command tree."""
    from typer.main import get_command

    return get_command(app)


def commands(command: Any = None, path: tuple[str, ...] = ("privada",)) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with the words that call it."""
    command = root_command() if command is None else command
    children = getattr(command, "commands", None)
    if children is None:
        yield " ".join(path), command
    else:
        for name, child in children.items():
            yield from commands(child, (*path, name))


def example(command: Any) -> str:
    """Return the example in a command's help."""
    return str(command.epilog or "").removeprefix("Example: ")


def reference() -> str:
    """Write the whole page."""
    codes = [line.strip() for line in (show.Exit.__doc__ or "").splitlines() if line.strip()[:1].isdigit()]
    body = "\n".join(f"| {line[0]} | {line[1:].strip()} |" for line in codes)
    exit_codes = f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{body}\n"
    return "\n".join([_HEAD, exit_codes, *(describe_command(name, command) for name, command in commands())])


def describe_command(name: str, command: Any) -> str:
    """Write the section of one command: its help, its usage, a table of its parameters, an example."""
    usage, arguments, options = [name], [], []
    for param in command.params:
        if param.param_type_name == "argument":
            usage.append(param.metavar if param.required else f"[{param.metavar}]")
            metavar = param.metavar.replace("|", "\\|")  # a bar would end the table's cell
            arguments.append(f"| `{metavar}` | {param.help or ''} |")
    for param in command.params:
        if param.param_type_name == "option":
            if param.required:
                usage.append(f"{param.opts[0]} {param.metavar}")
            value = f" {param.metavar}" if param.metavar else ""
            names = ", ".join(f"`{name}{value}`" for name in (*param.opts, *param.secondary_opts))
            silent = param.default is None or isinstance(param.default, bool) or param.required
            default = "" if silent else f" Default: `{param.default}`."
            required = " Required." if param.required else ""
            options.append(f"| {names} | {param.help or ''}{default}{required} |")
    table = "\n".join(("| | |", "| --- | --- |", *arguments, *options))
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    text = "\n\n".join(textwrap.fill(paragraph, 110) for paragraph in paragraphs)
    words = " ".join([*usage, "[OPTIONS]"])
    return f"## {name}\n\n{text}\n\n```\n{words}\n```\n\n{table}\n\n```bash\n{example(command)}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
