"""The wall between private rows and everyone else is in the tree, and a linter keeps it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import house

METHODS = house.PACKAGE / "methods"
ROOMS = sorted(each.name for each in METHODS.iterdir() if (each / "__init__.py").exists())
SIDES = {"questions", "owner", "learner"}
OPENS = "from privada.parties.private import Private\n"
ASKS = "from privada.methods.transport.owner.answer import answer_statistics\n"
PLANTED = {  # a place, what is written there, and the contract that has to break
    "methods/transport/learner/rows.py": (OPENS, "Questions and learners never touch private rows"),
    "methods/transport/questions/new.py": (ASKS, "Questions and learners never touch private rows"),
    "methods/clustering/learner/solver/new.py": (OPENS, "Questions and learners never touch private rows"),
    "methods/transport/estimator.py": (ASKS, "At the top of a room nobody opens rows"),
    "methods/cells/new.py": (OPENS, "At the top of a room nobody opens rows"),
    "methods/clustering/study.py": (
        "import privada.methods.transport.learner.learn\n",
        "Rooms import no other room but cells, linear and hypotheses, which all share",
    ),
    "methods/marginals/new.py": (
        "import privada.lab.papers.marginals\n",
        "The arrows of the house",
    ),
    "privacy/new.py": ("import privada.parties.schema\n", "The arrows of the house"),
    "report/new.py": (OPENS, "Nobody outside a room opens its owner's door"),
    "new/__init__.py": ("", "The arrows of the house"),
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_no_folder_but_its_two_sides(room):
    folders = {
        each.name for each in (METHODS / room).iterdir() if each.is_dir() and each.name != "__pycache__"
    }
    assert folders <= SIDES


def test_every_module_of_a_room_is_on_a_side():
    assert house.contract_coverage() == 1.0


def lint(tree: Path) -> str:
    """What the linter says of a copy of the package."""
    shutil.copy(house.HERE / "pyproject.toml", tree)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "400"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_planted_violations_are_seen(tmp_path):
    """Each kind of place is tried: whoever writes such an import is told, and by which contract."""
    shutil.copytree(house.PACKAGE, tmp_path / "src" / "privada", ignore=shutil.ignore_patterns("__pycache__"))
    assert re.search(r"\b0 broken", lint(tmp_path))
    for place, (line, _) in PLANTED.items():
        path = tmp_path / "src" / "privada" / place
        path.parent.mkdir(exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + line)
    said = re.sub(r"\s+", " ", lint(tmp_path))
    for place, (_, contract) in PLANTED.items():
        module = ".".join(("privada", *Path(place).with_suffix("").parts)).removesuffix(".__init__")
        assert f"{contract} BROKEN" in said, place
        assert re.search(rf"{re.escape(module)}(?![\w.])", said), place
