"""The registry of experiments."""

import pytest

from privada.exceptions import InputError
from privada_lab.datasets.files import FILES
from privada_lab.experiments import experiment, experiments, registry


def test_the_registry():
    assert all(name == each.name and each.runs >= each.quick_runs for name, each in experiments().items())
    with pytest.raises(InputError, match="one of cells, clustering, clustering-all-targets, core, forecasts"):
        experiment("everything")


def test_what_needs_an_extra_is_named_with_the_line_that_adds_it(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    (gan,) = experiment("clustering").skipped()
    assert "DP-GAN" in gan
    assert "privada-lab[deep]" in gan
    assert "privada[transport]" in experiment("transport").skipped()[0]
    (pictures,) = experiment("core").skipped(pictures=True)
    assert "privada[plot]" in pictures
    monkeypatch.setattr(registry, "find_spec", lambda name: name)
    assert all(each.skipped(pictures=True) == [] for each in experiments().values())


def test_every_file_is_read_by_experiments_that_exist():
    assert {name for each in FILES.values() for name in each.experiments} <= set(experiments())
    assert "mnist/mnist.npz" in experiment("clustering").files
    assert experiment("core").files == ()


def test_other_experiments_do_not_take_its_settings():
    given = {"half": None, "only": (), "limit": None, "out": None, "quick": True}
    assert experiment("tables").taken(**given) == given
    assert experiment("core").taken(**given) == {}
    with pytest.raises(InputError, match="tables does"):
        experiment("core").taken(**given | {"half": "final"})
