"""The auditors as pytest fixtures: ``pytest_plugins = ["privada.audit.fixtures"]``.

::

    def test_my_question(audit, replay):
        replay(question, rows, neighbour)                  # fails the test on a violation
        audit(question, rows, neighbour, trials=50_000)    # fails it if the bound exceeds the claim
        audit(function, data, other, claimed=guarantee)    # any function of a data set

Both return their result for further checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from privada.audit import blackbox
from privada.audit.replaying import ReplayResult
from privada.audit.replaying import replay as _replay
from privada.privacy.release import Question


@pytest.fixture
def audit() -> Callable[..., blackbox.AuditResult]:
    """The black-box auditor, which fails the test if the bound exceeds the claim."""

    def run(asked: Any, data: Any, neighbour: Any, **options: Any) -> blackbox.AuditResult:
        judge = blackbox.audit_question if isinstance(asked, Question) else blackbox.audit_mechanism
        result = judge(asked, data, neighbour, **options)
        if not result.passed:
            pytest.fail(str(result))
        return result

    return run


@pytest.fixture
def replay() -> Callable[..., ReplayResult]:
    """The replay auditor, which fails the test on a violation."""

    def run(*args: Any, **options: Any) -> ReplayResult:
        result = _replay(*args, **options)
        if not result.passed:
            pytest.fail(str(result))
        return result

    return run
