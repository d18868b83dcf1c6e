"""Random stopping: the best of a number of private runs that is drawn, and that nobody is told.

One run draws a candidate, fits it privately and scores it privately. After each run a coin decides whether
it was the last. Only the best leaves. Whoever is told how many runs there were, or sees another run, has a
release that the price does not cover. The proof is in privacy.md, "Choosing among candidates".

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
_KEPT: dict[str, _KeptSearch] = {}


def best_of_random_runs(run: Callable[[Noise], tuple[float, T]], *, runs: int, noise: Noise) -> T:
    """What the best of a random number of runs made; a later one has to be better than an earlier.

    Parameters
    ----------
    run : function of a noise
        Returns a score and what was made. Calls are independent and have the same law.
    runs : int
        Mean number of runs: after each, the search stops with probability ``1/runs``.
    noise : Noise

    Privacy
    -------
    If a run (score and all) is ``ε``-private, this is ``3ε``-private, whatever ``runs`` is.
    """
    best, made = run(noise)
    while noise.below(runs):
        score, other = run(noise)
        if score > best:
            best, made = score, other
    return made


def default_runs(candidates: int) -> int:
    """So many runs on average that each candidate is tried with probability 0.9.

    A candidate is tried with probability ``runs / (runs + candidates - 1)``.
    """
    return max(1, 9 * (candidates - 1))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RandomStopping(Question):
    """Ask for the best of a search that this process keeps under a name; it means nothing in any other.

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
def keeping_search(run: Run, *, epsilon: float) -> Iterator[str]:
    """Keep a search for the time of one question; ``epsilon`` is that of one run."""
    name = f"search-{uuid.uuid4().hex}"
    _KEPT[name] = _KeptSearch(run, epsilon)
    try:
        yield name
    finally:
        del _KEPT[name]


def take_winner(name: str, release: Release, key: OwnerKey) -> Any:
    """The fitted model that the search chose, its releases stamped with what paid for them."""
    winner = _KEPT[name].winner
    for each in _releases_in(winner):
        _stamp(each, release, key)
    winner.guarantee_ = release.guarantee
    return winner


def answer_search(question: RandomStopping, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Search; warnings and progress stay here, since they would tell the number of runs."""
    kept = _find(question)

    def run(noise: Noise) -> tuple[float, tuple[int, Any]]:
        score, index, model = kept.run(noise)
        return score, (index, model)

    with public_rows(), hidden(), warnings.catch_warnings():  # all runs are paid for by this question
        warnings.simplefilter("ignore")
        index, kept.winner = best_of_random_runs(run, runs=question.runs, noise=draw.noise)
    return {"choice": np.array([index], dtype=np.int64)}


def _find(question: RandomStopping) -> _KeptSearch:
    kept = _KEPT.get(question.search)
    if kept is None:
        raise InputError("This search is kept by another process, or no longer.")
    assert isinstance(question.guarantee, PureDP)
    if question.guarantee.epsilon < FACTOR * kept.epsilon:
        raise InputError(f"Expected {FACTOR} times the epsilon of one run, got {question.guarantee}.")
    return kept


def _stamp(release: Release, paid: Release, key: OwnerKey) -> None:
    """Put the search's price and receipt in place of those of a run, whose time would tell which it was."""
    for name in ("guarantee", "price", "question", "receipt"):
        object.__setattr__(release, name, getattr(paid, name))
    vars(release).pop("digest", None)
    object.__setattr__(release, "signature", key.sign(release.digest.encode()))


def _releases_in(model: Any) -> Iterator[Release]:
    """Every release that a fitted model holds, at whatever depth."""
    seen: dict[int, Any] = {}
    left = [model]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, Release):
            yield each
        else:
            left.extend(_parts(each))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, (np.ndarray, type)) or callable(value):
        return []
    held = [getattr(value, each.name, None) for each in fields(value)] if is_dataclass(value) else []
    return [*held, *getattr(value, "__dict__", {}).values()]


__all__ = [
    "FACTOR",
    "RandomStopping",
    "answer_search",
    "best_of_random_runs",
    "default_runs",
    "keeping_search",
    "take_winner",
]
