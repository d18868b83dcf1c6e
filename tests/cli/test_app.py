"""The application: which verbs there are, started quickly, in their order."""

import subprocess
import sys

from privada import __version__
from privada.cli.reference import commands, root_command

COMMANDS = dict(commands())


def test_the_verbs_of_the_house():
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
