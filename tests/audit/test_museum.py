"""Every exhibit of the museum of broken mechanisms is caught, by the function behind ``privada audit``.

Noise is seeded. Catching one depends on chance only where the black box or a test of the noise's law must
find it; over seeds each of those is missed with probability under 1e-6 (a replay never misses).
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

HOME = Path(__file__).with_name("broken")
NAME = "broken_mechanisms"


def museum():
    """The package beside this file; it is not installed, so it is loaded by its path."""
    if NAME not in sys.modules:
        spec = spec_from_file_location(NAME, HOME / "__init__.py", submodule_search_locations=[str(HOME)])
        sys.modules[NAME] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    return sys.modules[NAME]


EXHIBITS = museum().EXHIBITS


def test_the_museum_is_large_and_every_exhibit_says_what_is_wrong():
    assert len(EXHIBITS) >= 50
    assert all(len(exhibit.wrong) > 20 for exhibit in EXHIBITS.values())


@pytest.mark.statistical
@pytest.mark.parametrize("name", list(EXHIBITS))
def test_every_exhibit_is_caught(name, rehearsal):
    exhibit = EXHIBITS[name]
    assert not exhibit.audit(rehearsal).passed, exhibit.wrong
