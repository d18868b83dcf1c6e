"""The public surface: sorted, importable, and quick to import."""

import importlib
import subprocess
import sys

import pytest

import privada

PACKAGES = [
    "privada",
    "privada.privacy",
    "privada.parties",
    "privada.exchange",
    "privada.methods",
    "privada.methods.cells",
    "privada.methods.clustering",
    "privada.methods.evaluation",
    "privada.methods.hypotheses",
    "privada.methods.transport",
    "privada_lab.baselines",
    "privada.audit",
]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_there(name):
    package = importlib.import_module(name)
    assert list(package.__all__) == sorted(package.__all__)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert package.__doc__
    with pytest.raises(AttributeError):
        package.nothing_of_that_name


def test_import_is_quiet():
    """No heavy library, no global state, no network, no generator at import."""
    code = (
        "import random, sys; before = random.getstate(); import privada;"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'opendp', 'dp_accounting', 'pyarrow', 'sqlalchemy'};"
        "print(sorted(heavy & set(sys.modules)), random.getstate() == before, sys.stdout is sys.__stdout__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True True"
    assert done.stderr == ""


WITHOUT = """
import importlib, pkgutil, sys
out_of_reach, packages = set(sys.argv[1].split(",")), sys.argv[2].split(",")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in out_of_reach:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
names = [
    module.name
    for package in packages
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + ".")
    if "__main__" not in module.name
]
modules = [importlib.import_module(name) for name in names]
for module in modules:
    for name in getattr(module, "__all__", ()):
        getattr(module, name)
print(len(modules) > 150, out_of_reach & set(sys.modules))
"""


def test_every_module_is_there_without_the_deep_extra():
    """With torch and opacus out of reach, every module can be imported and every public name is there."""
    command = [sys.executable, "-c", WITHOUT, "torch,opacus", "privada,privada_lab"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True set()"


def test_every_module_of_the_product_is_there_without_the_lab():
    command = [sys.executable, "-c", WITHOUT, "privada_lab,torch,opacus", "privada"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True set()"


@pytest.mark.parametrize(
    "code",
    [
        "import privada.lab.baselines",
        "from privada.lab import papers",
        "from privada.lab.datasets.shift import digits_shift",
        "__import__('privada.lab').lab.experiments",
    ],
)
def test_the_old_path_of_the_lab_names_the_new_one(code):
    with pytest.raises(ImportError, match=r"import privada_lab instead\.$"):
        exec(code)


def test_the_version_is_the_distributions():
    assert privada.__version__ == importlib.metadata.version("privada")
