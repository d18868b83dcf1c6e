"""The registry of experiments."""

import pytest

from privada.exceptions import InputError
from privada.lab.experiments import experiment, experiments


def test_the_registry():
    assert all(name == each.name and each.runs >= each.quick_runs for name, each in experiments().items())
    with pytest.raises(InputError, match="one of cells, clustering, core, marginals"):
        experiment("everything")


def test_other_experiments_do_not_take_its_settings():
    given = {"half": None, "only": (), "limit": None, "out": None, "quick": True}
    assert experiment("tables").taken(**given) == given
    assert experiment("core").taken(**given) == {}
    with pytest.raises(InputError, match="tables does"):
        experiment("core").taken(**given | {"half": "final"})
