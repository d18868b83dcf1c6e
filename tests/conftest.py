import warnings

import pytest

from privada.exceptions import RehearsalWarning
from privada.privacy import Rehearsal


@pytest.fixture
def rehearsal():
    """Seeded noise: reproducible, and not private."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return Rehearsal(20_260_101)
