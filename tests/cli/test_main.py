"""The application: its commands, started quickly and in order, each with help and an example that parses."""

import shlex
import subprocess
import sys

import pytest

from privada import __version__
from privada.cli.reference import commands, example, root_command

COMMANDS = dict(commands())


def test_all_commands_are_present():
    verbs = {name.removeprefix("privada ") for name in COMMANDS}
    assert verbs >= {"demo", "init", "price", "ask", "answer", "learn", "run", "reproduce", "audit"}
    assert verbs >= {"owner init", "ledger show", "ledger verify", "ledger export", "ledger backup"}


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from privada.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'dp_accounting', 'opendp', 'pyarrow', 'numba', 'sqlalchemy'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_the_script_and_the_module_run():
    done = subprocess.run(
        [sys.executable, "-m", "privada.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("privada ")


def test_verbs_are_listed_in_the_order_in_which_one_meets_them():
    command = root_command()
    listed = command.list_commands(command.make_context("privada", ["demo"]))
    assert listed[:4] == ["demo", "advise", "init", "run"]
    assert listed[-7:] == ["owner", "card", "learner", "ledger", "question", "release", "broker"]


def test_without_a_verb_help_is_shown_and_the_version_needs_none(cli):
    assert "Usage: privada" in cli("-h").stdout
    assert cli("--version").stdout == f"privada {__version__}\n"


def parsed(words):
    """Parse a call as the command line would, without running it."""
    command, context = root_command(), None
    while True:
        context = command.make_context(command.name, list(words), parent=context, resilient_parsing=False)
        if not hasattr(command, "commands"):
            return command, context.params
        words = list(getattr(context, "_protected_args", [])) + list(context.args)
        command, words = command.commands[words[0]], words[1:]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_that_parses(cli, name):
    command = COMMANDS[name]
    text = cli(*name.split()[1:], "--help").stdout
    assert f"Example: {example(command)[:40]}" in " ".join(text.split())
    words = shlex.split(example(command))
    assert " ".join(words).startswith(name)
    found, params = parsed(words[1:])
    assert found.name == command.name
    assert params


SERVERS = {"privada owner serve"}  # they end with no result, and their logs are JSON


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_is_described_and_json_is_offered(name):
    for param in COMMANDS[name].params:
        assert getattr(param, "help", ""), param.name
    if name not in SERVERS:
        assert any("--json" in param.opts for param in COMMANDS[name].params)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_loses_nothing_to_markup(cli, name):
    text = " ".join(cli(*name.split()[1:], "--help").stdout.replace("│", " ").split())
    for sentence in " ".join((COMMANDS[name].help or "").split()).split(". "):
        assert sentence[:60] in text


def test_help_is_wrapped_at_the_width_of_the_terminal(cli):
    lines = [line.strip() for line in cli("evaluate", "--help").stdout.splitlines()]
    start = next(place for place, line in enumerate(lines) if line.startswith("The study says"))
    paragraph = lines[start : lines.index("", start)]
    assert min(map(len, paragraph[:-1])) > 60
