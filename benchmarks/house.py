"""How the source stands: which modules the boundary covers, what has a test, what an extension has to touch.

* ``contract_coverage``: share of the methods' modules that the boundary's contracts (pyproject.toml) put on a
  side. The contracts' own globs are matched against the import graph; ``owner`` is the private side.
* ``modules_with_own_test``: share of public modules with a file ``test_NAME.py`` that holds a test, in the
  folder of its distribution's ``tests`` that mirrors the module's, or in one above it that has no module of
  that name.
* ``files_for_a_new_column_type``: modules of the product that ask which type a column is, beside the one with
  the types; the class itself, a test and a page come on top
  (``tests/parties/test_new_column_type.py`` brings a type).
* ``files_for_a_sixth_method``: files that "Add a sixth method" in CONTRIBUTING writes
  (``tests/test_docs.py`` installs them and runs the contracts on them).
* ``modules_in_one_fit``: modules whose code runs in one fit of `CellClassifier`.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks._figures import Figure, main

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "privada"
TESTS_OF = {PACKAGE: HERE / "tests", HERE / "lab" / "src" / "privada_lab": HERE / "lab" / "tests"}
BOUNDARY = (
    "Questions and learners never touch private rows",
    "At the top of a method's package nobody opens rows",
)
COLUMN_PARTS = 3  # the class with its registration, its test, its page


def measure(quick: bool) -> Iterator[Figure]:  # noqa: ARG001 - nothing takes long
    """Count."""
    yield Figure("contract_coverage", contract_coverage(), 1.0, "higher", "modules of methods", 1)
    untested, public = modules_without_own_test()
    share = 1 - len(untested) / len(public)
    yield Figure("modules_with_own_test", share, 0.85, "higher", f"{len(public)} public modules", 1)
    columns = COLUMN_PARTS + len(modules_that_ask_for_column_types())
    yield Figure("files_for_a_new_column_type", columns, 5, "lower", "files", 1)
    yield Figure("files_for_a_sixth_method", len(files_of_the_sixth_method()), 6, "lower", "files", 1)
    yield Figure("modules_in_one_fit", len(modules_in_one_fit()), 40, "lower", "modules", 1)


def contract_coverage() -> float:
    """Share of the methods' modules that are on one side of the boundary by contract."""
    import grimp

    graph = grimp.build_graph("privada", cache_dir=None)
    modules_of_methods = {name for name in graph.modules if name.startswith("privada.methods.")}
    covered = set(graph.find_matching_modules("privada.methods.*.owner.**"))
    for contract in boundary_contracts():
        for expression in contract["source_modules"]:
            matching = graph.find_matching_modules(expression)
            covered |= matching
            if contract.get("as_packages", True):
                covered |= {below for name in matching for below in graph.find_descendants(name)}
    return len(modules_of_methods & covered) / len(modules_of_methods)


def boundary_contracts() -> list[dict[str, Any]]:
    """The contracts that keep the boundary."""
    settings = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return [contract for contract in contracts if contract["name"] in BOUNDARY]


def modules(package: Path) -> list[Path]:
    """All modules of a package but ``__init__``."""
    return sorted(path for path in package.rglob("*.py") if path.name != "__init__.py")


def modules_without_own_test() -> tuple[list[str], list[str]]:
    """Public modules of both packages without a test file of their name, and all public modules."""
    untested, public = [], []
    for package, folder in TESTS_OF.items():
        tests = {
            (path.parent.relative_to(folder).parts, path.stem)
            for path in folder.rglob("test_*.py")
            if _holds_a_test(path)
        }
        for module in modules(package):
            if not module.name.startswith("_"):
                public.append(str(module))
                if not _places_of_its_test(module, package) & tests:
                    untested.append(str(module.relative_to(package)))
    return untested, public


def _places_of_its_test(module: Path, package: Path) -> set[tuple[tuple[str, ...], str]]:
    """Where a module's test may stand: in the folder that mirrors its own, or above if it is no other's."""
    folder = module.parent.relative_to(package).parts
    above = [folder[:depth] for depth in range(len(folder))]
    free = [parts for parts in above if not package.joinpath(*parts, module.name).exists()]
    return {(parts, f"test_{module.stem}") for parts in (*free, folder)}


def _holds_a_test(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.walk(tree))


def modules_that_ask_for_column_types() -> list[str]:
    """Modules that name a type of columns to ask for it, beside the one that has the types."""
    from privada.parties.columns import column_types

    types = rf"\b({'|'.join(sorted({column.__name__ for column in column_types()}))})\b"
    asks = re.compile(rf"isinstance\([^()]*{types}|type\([^()]*\) (is|==|in) [^:\n]*{types}|{{{types}:")
    return [
        str(module.relative_to(PACKAGE))
        for module in modules(PACKAGE)
        if module.name != "columns.py" and asks.search(module.read_text(encoding="utf-8"))
    ]


def files_of_the_sixth_method() -> list[str]:
    """The files that CONTRIBUTING's method consists of, tests included."""
    text = (HERE / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(r"^```\w+\n# ([\w/.]+\.(?:py|toml))$", text, re.MULTILINE)


def modules_in_one_fit() -> set[str]:
    """Modules whose code runs while an estimator of cells is fitted."""
    import numpy as np

    from privada import CellClassifier

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (500, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = CellClassifier(centers=[[0.2, 0.5], [0.8, 0.5]], classes=(0, 1), bounds=(0, 1), epsilon=1)
    modules_called: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents and frame.f_code.co_name != "<module>":
            modules_called.add(str(path.relative_to(PACKAGE)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)  # imports are no part of it
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            model.fit(X + 1e-9, y)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return modules_called


if __name__ == "__main__":
    main(measure, "The source")
