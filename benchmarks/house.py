"""How the house stands: who is behind the wall, how large folders are, what has a test of its name.

* ``contract_coverage``: share of room modules that the wall's contracts (pyproject.toml) put on a side. The
  contracts' own globs are matched against the import graph; ``owner/`` is the private side.
* ``largest_folder``: modules in the largest folder of a package, not counting those in folders below it.
* ``modules_with_own_test``: share of public modules with a file ``test_NAME.py`` that holds a test, in the
  folder of its distribution's ``tests`` that mirrors the module's, or in one above it that has no module of
  that name.
* ``room_lines``: lines under ``methods/``.
* ``modules_touched_by_one_answer``: modules whose code runs while an owner answers one question about cells.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks._figures import Figure, main

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "privada"
TESTS_OF = {PACKAGE: HERE / "tests", HERE / "lab" / "src" / "privada_lab": HERE / "lab" / "tests"}
WALL = ("Questions and learners never touch private rows", "At the top of a room nobody opens rows")


def measure(quick: bool) -> Iterator[Figure]:  # noqa: ARG001 - nothing takes long
    """Count."""
    yield Figure("contract_coverage", contract_coverage(), 1.0, "higher", "room modules", 1)
    yield Figure("largest_folder", max(folder_sizes().values()), 14, "lower", "modules", 1)
    untested, public = modules_without_own_test()
    share = 1 - len(untested) / len(public)
    yield Figure("modules_with_own_test", share, 0.85, "higher", f"{len(public)} public modules", 1)
    yield Figure("room_lines", room_lines(), 19_000, "lower", "lines", 1)
    touched = len(modules_touched_by_one_answer())
    yield Figure("modules_touched_by_one_answer", touched, 20, "lower", "modules", 1)


def contract_coverage() -> float:
    """Share of the rooms' modules that are on one side of the wall by contract."""
    import grimp

    graph = grimp.build_graph("privada", cache_dir=None)
    rooms = {each for each in graph.modules if each.startswith("privada.methods.")}
    covered = set(graph.find_matching_modules("privada.methods.*.owner.**"))
    for contract in wall_contracts():
        for expression in contract["source_modules"]:
            found = graph.find_matching_modules(expression)
            covered |= found
            if contract.get("as_packages", True):
                covered |= {below for each in found for below in graph.find_descendants(each)}
    return len(rooms & covered) / len(rooms)


def wall_contracts() -> list[dict[str, Any]]:
    """The contracts that keep the wall."""
    settings = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return [each for each in contracts if each["name"] in WALL]


def modules(package: Path) -> list[Path]:
    """All modules of a package but ``__init__``."""
    return sorted(path for path in package.rglob("*.py") if path.name != "__init__.py")


def folder_sizes() -> Counter[str]:
    """Number of modules in each folder of both packages."""
    return Counter(str(path.parent) for package in TESTS_OF for path in modules(package))


def modules_without_own_test() -> tuple[list[str], list[str]]:
    """Public modules of both packages without a test file of their name, and all public modules."""
    untested, public = [], []
    for package, folder in TESTS_OF.items():
        tests = {
            (path.parent.relative_to(folder).parts, path.stem)
            for path in folder.rglob("test_*.py")
            if _tests(path)
        }
        for module in modules(package):
            if not module.name.startswith("_"):
                public.append(str(module))
                if not _mirrored(module, package) & tests:
                    untested.append(str(module.relative_to(package)))
    return untested, public


def _mirrored(module: Path, package: Path) -> set[tuple[tuple[str, ...], str]]:
    """Where a module's test may stand: in the folder that mirrors its own, or above if it is no other's."""
    folder = module.parent.relative_to(package).parts
    above = [folder[:depth] for depth in range(len(folder))]
    free = [each for each in above if not package.joinpath(*each, module.name).exists()]
    return {(each, f"test_{module.stem}") for each in (*free, folder)}


def _tests(path: Path) -> bool:
    """Whether a file holds a test."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(each, ast.FunctionDef) and each.name.startswith("test_") for each in ast.walk(tree))


def room_lines() -> int:
    """Lines of all rooms."""
    return sum(each.read_text(encoding="utf-8").count("\n") for each in (PACKAGE / "methods").rglob("*.py"))


def modules_touched_by_one_answer() -> set[str]:
    """Modules whose code runs in `Owner.answer`, from the question to the release."""
    import numpy as np

    from privada import Bins, CellStatistics, Owner, PureDP, Relation, Schema

    guarantee = PureDP(epsilon=1, relation=Relation.ADD_REMOVE)
    rows = np.linspace(0, 1, 100)[:, None]
    owner = Owner(rows, schema=Schema.of_numbers(bounds=(0, 1), width=1), dataset="rows", budget=guarantee)
    question = CellStatistics(tables=(Bins(feature=0, edges=np.array([0.5])),), guarantee=guarantee)
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents and path.name != "__init__.py":
            seen.add(str(path.relative_to(PACKAGE)))

    sys.setprofile(note)
    try:
        owner.answer(question)
    finally:
        sys.setprofile(None)
    return seen


if __name__ == "__main__":
    main(measure, "The house")
