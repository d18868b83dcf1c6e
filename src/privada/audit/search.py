"""A lower bound on what a private search for settings loses: its choice, and the model that it gives away.

The search runs as it is, ledgers and all, on two neighbouring sets of generated rows, many times. What is
looked at is what whoever gets the fitted search can see: which candidate was chosen, and every array of its
release. See `privada.audit.blackbox` for what a bound proves.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from privada._arrays import FloatArray
from privada.audit.blackbox import CONFIDENCE, AuditResult, audit_mechanism
from privada.exceptions import InputError
from privada.model_selection.search import PrivateSearchCV
from privada.parties.one_process.process_ledger import public_rows

TRIALS = 400  # a search of some fits takes a tenth of a second


def audit_search(
    search: PrivateSearchCV,
    rows: tuple[Any, Any],
    neighbour: tuple[Any, Any],
    *,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    **public: Any,
) -> AuditResult:
    """Audit a search that chooses privately, against the price that it states.

    Parameters
    ----------
    search : PrivateSearchCV
        Not fitted; every trial fits a clone.
    rows, neighbour : (X, y)
        Generated rows, neighbours under the estimator's relation and unit. Try one whose odd row is held out
        and one in which it is fitted on.
    trials : int, default=400
        Searches on each.
    confidence : float, default=0.99
        A sound search fails at most ``1 - confidence`` of the time.
    **public
        Further arguments of the search's ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from privada import CellClassifier
    >>> from privada.model_selection import PrivateSearchCV
    >>> model = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=1)
    >>> search = PrivateSearchCV(model, {"centers": [[[0.5]], [[0.2], [0.8]]]}, selection_epsilon=1)
    >>> X, y = np.linspace(0, 1, 20)[:, None], np.repeat([0, 1], 10)
    >>> audit_search(search, (X, y), (X[1:], y[1:]), trials=100).passed
    True
    """
    if search.public is not None:
        raise InputError("Expected a search that chooses on private rows: one on public rows loses nothing.")
    return audit_mechanism(
        lambda data: _outcome(clone(search), data, public),
        rows,
        neighbour,
        claimed=search.price(),
        trials=trials,
        confidence=confidence,
    )


def _outcome(search: PrivateSearchCV, data: tuple[Any, Any], public: dict[str, Any]) -> FloatArray:
    """What the fitted search shows: which candidate is the best, and the numbers of its release."""
    with public_rows(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(*data, **public)
    release = search.best_estimator_.release_
    numbers = [np.ravel(release[name]).astype(np.float64) for name in sorted(release.payload)]
    return np.concatenate([[float(search.best_index_)], *numbers])


__all__ = ["audit_search"]
