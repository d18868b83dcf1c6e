"""Random stopping: the best of a random and secret number of private runs.

One run draws a candidate, fits it privately and scores it privately. After each run a coin decides whether
it was the last. Only the best is released. If somebody learns how many runs there were, or sees another run,
that is a release that the price does not cover. The proof is in privacy.md, "Choosing among candidates".

References
----------
J. Liu and K. Talwar, *Private selection from private candidates*, STOC 2019. N. Papernot and T. Steinke,
*Hyperparameter tuning with Rényi differential privacy*, ICLR 2022.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from privada import _check
from privada._progress import hidden
from privada.exceptions import InputError
from privada.parties.answering import Draws
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.rows import Rows
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Plan, pure_event
from privada.privacy.noise import Noise
from privada.privacy.receipt import OwnerKey
from privada.privacy.release import Question, Release

T = TypeVar("T")
Run = Callable[[Noise], tuple[float, int, Any]]  # score, place of the candidate, fitted model

FACTOR = 3  # what the best costs, in epsilons of one run
KEPT_SEARCHES: dict[str, _KeptSearch] = {}


def best_of_random_runs(run: Callable[[Noise], tuple[float, T]], *, runs: int, noise: Noise) -> T:
    """Return what the best of a random number of runs made; a later run must be better than an earlier one.

    Parameters
    ----------
    run : function of a noise
        Returns a score and a result. Calls are independent and have the same law.
    runs : int
        Mean number of runs: after each, the search stops with probability ``1/runs``.
    noise : Noise

    Privacy
    -------
    If a run (score and all) is ``ε``-private, this is ``3ε``-private, whatever ``runs`` is.
    """
    best_score, best = run(noise)
    while noise.below(runs):
        score, result = run(noise)
        if score > best_score:
            best_score, best = score, result
    return best


def default_runs(candidates: int) -> int:
    """Compute the mean number of runs with which each candidate is tried with probability 0.9.

    A candidate is tried with probability ``runs / (runs + candidates - 1)``.
    """
    return max(1, 9 * (candidates - 1))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RandomStopping(Question):
    """Ask for the best of a search that this process keeps under a name; no other process knows it.

    Parameters
    ----------
    search : str
        Name of the search.
    candidates : int
    runs : int
        Mean number of runs.

    Privacy
    -------
    The guarantee is ``3 ε``, pure, ``ε`` being that of one run: its fit and its score together.
    """

    search: str
    candidates: int
    runs: int
    kind: ClassVar[str] = "model_selection.random_stopping"
    answered_by: ClassVar[str] = "privada.model_selection.random_stopping:answer_search"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check.count(candidates=self.candidates)
        _check.count(runs=self.runs)
        if not isinstance(self.guarantee, PureDP):
            raise InputError(f"Random stopping is asked for pure epsilon, not for {self.guarantee}.")

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"choice": (1,)}

    def planned(self) -> Plan:
        """One event for all runs; the noise inside is that of the fits and the scores."""
        assert isinstance(self.guarantee, PureDP)
        return Plan(draws={}, event=pure_event(self.guarantee.epsilon), epsilon=self.guarantee.epsilon)


@dataclass(eq=False)
class _KeptSearch:
    run: Run
    epsilon: float  # of one run
    winner: Any = None


@contextmanager
def keep_search(run: Run, *, epsilon: float) -> Iterator[str]:
    """Keep a search for the time of one question; ``epsilon`` is that of one run."""
    name = f"search-{uuid.uuid4().hex}"
    KEPT_SEARCHES[name] = _KeptSearch(run, epsilon)
    try:
        yield name
    finally:
        del KEPT_SEARCHES[name]


def take_winner(name: str, release: Release, key: OwnerKey) -> Any:
    """Return the model that the search chose, with the search's price and receipt on its releases."""
    winner = KEPT_SEARCHES[name].winner
    for run_release in _find_releases(winner):
        # The receipt of the run itself has a time, which would tell which run it was
        for field in ("guarantee", "price", "question", "receipt"):
            object.__setattr__(run_release, field, getattr(release, field))
        vars(run_release).pop("digest", None)
        object.__setattr__(run_release, "signature", key.sign(run_release.digest.encode()))
    winner.guarantee_ = release.guarantee
    return winner


def answer_search(question: RandomStopping, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Search; warnings and progress are silenced, since they would tell the number of runs."""
    search = KEPT_SEARCHES.get(question.search)
    if search is None:
        raise InputError("This search is kept by another process, or no longer.")
    assert isinstance(question.guarantee, PureDP)
    if question.guarantee.epsilon < FACTOR * search.epsilon:
        raise InputError(f"Expected {FACTOR} times the epsilon of one run, got {question.guarantee}.")

    def run(noise: Noise) -> tuple[float, tuple[int, Any]]:
        score, index, model = search.run(noise)
        return score, (index, model)

    # All runs are paid for by this question: the fits inside charge nothing
    with public_rows(), hidden(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index, search.winner = best_of_random_runs(run, runs=question.runs, noise=draw.noise)
    return {"choice": np.array([index], dtype=np.int64)}


def _find_releases(model: Any) -> Iterator[Release]:
    """Yield every release in a fitted model, at any depth."""
    visited: dict[int, Any] = {}  # the values themselves stay alive, so that no id is used twice
    stack = [model]
    while stack:
        value = stack.pop()
        if id(value) in visited:
            continue
        visited[id(value)] = value
        if isinstance(value, Release):
            yield value
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, (list, tuple, set, frozenset)):
            stack.extend(value)
        elif not isinstance(value, (np.ndarray, type)) and not callable(value):
            if is_dataclass(value):
                stack.extend(getattr(value, field.name, None) for field in fields(value))
            stack.extend(getattr(value, "__dict__", {}).values())


__all__ = [
    "FACTOR",
    "RandomStopping",
    "answer_search",
    "best_of_random_runs",
    "default_runs",
    "keep_search",
    "take_winner",
]
