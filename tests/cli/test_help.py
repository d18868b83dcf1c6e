"""Every command explains itself, with an example that parses, and starts quickly."""

import shlex
import subprocess
import sys

import pytest

from privada.cli.reference import commands, example, reference, root_command

COMMANDS = dict(commands())


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


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_is_described_and_json_is_offered(name):
    for param in COMMANDS[name].params:
        assert getattr(param, "help", ""), param.name
    assert any("--json" in param.opts for param in COMMANDS[name].params)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_loses_nothing_to_markup(cli, name):
    text = " ".join(cli(*name.split()[1:], "--help").stdout.replace("│", " ").split())
    for sentence in " ".join((COMMANDS[name].help or "").split()).split(". "):
        assert sentence[:60] in text


def test_the_verbs_of_the_house():
    verbs = {name.removeprefix("privada ") for name in COMMANDS}
    assert verbs >= {"demo", "init", "price", "ask", "answer", "learn", "run", "reproduce", "audit"}
    assert verbs >= {"owner init", "ledger show", "ledger verify", "ledger export", "ledger backup"}


def test_the_reference_is_up_to_date(request):
    page = request.config.rootpath / "docs" / "reference" / "cli.md"
    assert page.read_text(encoding="utf-8") == reference(), "run: make reference"


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
