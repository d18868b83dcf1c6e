"""Every command explains itself, with an example that parses, and starts quickly."""

import shlex

import pytest

from privada.cli.reference import commands, example, root_command

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
