"""The registry: cards by name, paths imported when they are needed, and what is broken left out."""

import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module

import pytest

from privada.exceptions import InputError, PrivadaWarning
from privada.methods.method import Method, find_method, load, methods

registry_module = import_module("privada.methods.method")


def test_the_methods_all_have_a_demo():
    assert [name for name, method in methods().items() if not method.has_part("demo")] == []
    with pytest.raises(ValueError, match="The method bare has no demo; cells, clustering.* have one"):
        Bare.demo(0)


def test_an_unknown_method_is_told_which_there_are():
    with pytest.raises(InputError, match="one of cells, clustering, .* got 'magic'"):
        find_method("magic")


def test_methods_are_sorted_and_know_themselves():
    assert list(methods()) == sorted(methods())
    assert all(find_method(name).name == name for name in methods())


def test_a_card_is_read_without_its_room():
    """Paths are imported when they are first needed: commands list methods quickly."""
    code = (
        "import sys\n"
        "from privada.methods.method import methods\n"
        "assert len(methods()) >= 6\n"
        "sys.exit(', '.join(sorted({'sklearn', 'numba', 'torch'} & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True, kw_only=True)
class Bare(Method):
    name = "bare"


class Entry:
    def __init__(self, name, card):
        self.name, self.card = name, card

    def load(self):
        if self.card is None:
            raise ImportError("no module named torch")
        return self.card


def test_what_cannot_be_loaded_is_named_and_left_out(monkeypatch):
    entries = [Entry("whole", Bare), Entry("broken", None), Entry("other", object())]
    monkeypatch.setattr(registry_module.metadata, "entry_points", lambda group: entries)
    with pytest.warns(PrivadaWarning) as warned:
        assert list(registry_module.methods.__wrapped__()) == ["whole"]
    assert [str(each.message).split(" cannot")[0] for each in warned] == [
        "The method broken",
        "The method other",
    ]


def test_load_takes_a_module_and_a_name():
    assert load("privada.methods.method:load") is load
