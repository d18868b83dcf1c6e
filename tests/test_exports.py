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
    "privada.lab.baselines",
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


WITHOUT_DEEP = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "opacus"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import privada
names = [m.name for m in pkgutil.walk_packages(privada.__path__, "privada.") if "__main__" not in m.name]
modules = [importlib.import_module(name) for name in names]
for module in modules:
    for name in getattr(module, "__all__", ()):
        getattr(module, name)
print(len(modules) > 150, {"torch", "opacus"} & set(sys.modules))
"""


def test_every_module_is_there_without_the_deep_extra():
    """With torch and opacus out of reach, every module can be imported and every public name is there."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_DEEP], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True set()"


def test_the_version_is_the_distributions():
    assert privada.__version__ == importlib.metadata.version("privada")
