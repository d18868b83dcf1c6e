"""Every key that a study's reader knows is in its docstring, from which the reference is made."""

import ast
import inspect
import re
from importlib import import_module

import pytest

from privada.methods.method import methods

READS = {"string", "whole", "number", "flag", "array", "section"}
MODULES = {name: card.study_path.partition(":")[0] for name, card in methods().items() if card.study_path}


def literal_keys(module):
    """Keys that are read by their literal name."""
    tree = ast.parse(inspect.getsource(module))
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    read = [each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr in READS]
    first = [each.args[0] for each in read if each.args]
    return {each.value for each in first if isinstance(each, ast.Constant) and isinstance(each.value, str)}


@pytest.mark.parametrize("name", MODULES)
def test_every_key_is_documented(name):
    module = import_module(MODULES[name])
    documented = set(re.findall(r"^    (\w+) = ", inspect.cleandoc(module.__doc__), re.MULTILINE))
    assert documented >= {"name"}
    assert literal_keys(module) - documented == set()
