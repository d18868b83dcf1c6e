"""The registry: cards by name, paths imported when they are needed, and what is broken left out."""

import subprocess
import sys
from dataclasses import replace

import pytest

from privada.exceptions import InputError, PrivadaWarning
from privada.methods import registry
from privada.methods.registry import load, method, methods


def test_the_methods_all_have_a_demo():
    assert [name for name, method in methods().items() if method.demo_path is None] == []
    with pytest.raises(ValueError, match="no demo"):
        replace(methods()["cells"], demo_path=None).demo(0)


def test_an_unknown_method_is_told_which_there_are():
    with pytest.raises(InputError, match="one of cells, clustering, .* got 'magic'"):
        method("magic")


def test_methods_are_sorted_and_know_themselves():
    assert list(methods()) == sorted(methods())
    assert all(method(name).name == name for name in methods())


def test_a_card_is_read_without_its_room():
    """Paths are imported when they are first needed: commands list methods quickly."""
    code = (
        "import sys\n"
        "from privada.methods.registry import methods\n"
        "assert len(methods()) >= 6\n"
        "sys.exit(', '.join(sorted({'sklearn', 'numba', 'torch'} & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Entry:
    def __init__(self, name, card):
        self.name, self.card = name, card

    def load(self):
        if self.card is None:
            raise ImportError("no module named torch")
        return self.card


def test_what_cannot_be_loaded_is_named_and_left_out(monkeypatch):
    class Room:
        METHOD = method("cells")

    entries = [Entry("whole", Room), Entry("broken", None), Entry("cardless", object())]
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: entries)
    with pytest.warns(PrivadaWarning) as warned:
        assert list(registry.methods.__wrapped__()) == ["whole"]
    assert [str(each.message).split(" cannot")[0] for each in warned] == [
        "The method broken",
        "The method cardless",
    ]


def test_load_takes_a_module_and_a_name():
    assert load("privada.methods.registry:load") is load
