"""The boundary between private rows and everyone else is in the tree, and a linter keeps it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import house

METHODS = house.PACKAGE / "methods"
PACKAGES = sorted(folder.name for folder in METHODS.iterdir() if (folder / "__init__.py").exists())
SOURCES = ("src", "lab/src")
SIDES = {"questions", "owner", "learner"}
SIDED = "Questions and learners never touch private rows"
OPENS = "from privada.parties.private import Private\n"
ASKS = "from privada.methods.transport.owner import answer_statistics\n"
PLANTED = {  # a place, what is written there, and the contract that has to break
    "src/privada/methods/transport/learner/rows.py": (OPENS, SIDED),
    "src/privada/methods/transport/questions/new.py": (ASKS, SIDED),
    "src/privada/methods/clustering/learner/new.py": (OPENS, SIDED),
    "src/privada/methods/transport/estimator.py": (
        ASKS,
        "At the top of a method's package nobody opens rows",
    ),
    "src/privada/methods/cells/new.py": (OPENS, "At the top of a method's package nobody opens rows"),
    "src/privada/methods/cells/method.py": (
        "from privada.methods.cells.owner import answer\n",
        "At the top of a method's package nobody opens rows",
    ),
    "src/privada/methods/cells/learner.py": (
        "from privada.methods.cells.owner import answer\n",
        SIDED,
    ),
    "src/privada/methods/clustering/method.py": (
        "import privada.methods.transport.learner.learn\n",
        "Methods import no other method but cells, linear and hypotheses, which all share",
    ),
    "src/privada/methods/marginals/new.py": (
        "import privada_lab.papers.marginals\n",
        "The product never imports the lab",
    ),
    "src/privada/cli/new.py": (
        "def command():\n    from privada_lab.experiments.registry import experiments\n",
        "The product never imports the lab",
    ),
    "src/privada/privacy/new.py": (
        "import privada.parties.schema\n",
        "Imports go one way through the packages",
    ),
    "src/privada/report/new.py": (OPENS, "Nobody outside a method opens private rows"),
    "src/privada/new/__init__.py": ("", "Imports go one way through the packages"),
    "lab/src/privada_lab/papers/new.py": (
        "import privada_lab.baselines.coreset\n",
        "Imports go one way through the lab",
    ),
    "lab/src/privada_lab/new.py": ("", "Imports go one way through the lab"),
    "lab/src/privada_lab/datasets/new.py": (OPENS, "Nobody outside a method opens private rows"),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_method_has_no_folder_but_its_two_sides(package):
    folders = {path.name for path in (METHODS / package).iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} <= SIDES


def test_every_module_of_a_method_is_on_a_side():
    assert house.contract_coverage() == 1.0


def lint(tree: Path) -> str:
    """What the linter says of a copy of the package."""
    shutil.copy(house.HERE / "pyproject.toml", tree)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    sources = os.pathsep.join(str(tree / folder) for folder in SOURCES)
    environment = {**os.environ, "PYTHONPATH": sources, "COLUMNS": "400"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_planted_violations_are_seen(tmp_path):
    """Each kind of place is tried: whoever writes such an import is told, and by which contract."""
    for folder in SOURCES:
        shutil.copytree(house.HERE / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert re.search(r"\b0 broken", lint(tmp_path))
    for place, (line, _) in PLANTED.items():
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + line)
    report = re.sub(r"\s+", " ", lint(tmp_path))
    for place, (_, contract) in PLANTED.items():
        parts = Path(place).with_suffix("").parts
        module = ".".join(parts[parts.index("src") + 1 :]).removesuffix(".__init__")
        assert f"{contract} BROKEN" in report, place
        assert re.search(rf"{re.escape(module)}(?![\w.])", report), place
