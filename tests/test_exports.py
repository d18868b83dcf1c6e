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
    "privada.engines",
    "privada.methods",
    "privada.methods.cells",
    "privada.methods.clustering",
    "privada.methods.transport",
    "privada.baselines",
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


def test_the_version_is_the_distributions():
    assert privada.__version__ == importlib.metadata.version("privada")


def test_the_error_tree_is_the_one_drawn():
    from privada import exceptions

    for name in exceptions.__all__:
        assert name in exceptions.__doc__, f"{name} is missing from the drawing"
        assert issubclass(getattr(exceptions, name), (exceptions.PrivadaError, exceptions.PrivadaWarning))
