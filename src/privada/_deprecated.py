"""Names of 0.2 that still work, each with a warning that tells the new one; to be deleted whole in 0.4."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

RENAMED = {
    "Approximate": "ApproxDP",
    "Ask": "AskOwner",
    "MarginalLearner": "MarginalClassifier",
    "Nearest": "NearestCells",
    "Product": "GridCells",
    "Pure": "PureDP",
    "request": "make_guarantee",
}
MOVED = {  # by module
    "privada.parties.protocol": {
        "Foreseen": "privada._deprecated:PlannedLearner",
        "PlannedLearner": "privada._deprecated:PlannedLearner",
        "check_ahead": "privada.parties.running:check_ahead",
        "quote_all": "privada.parties.running:quote_all",
        "run": "privada.parties.running:run",
    },
    "privada.parties": {"PlannedLearner": "privada._deprecated:PlannedLearner"},
}
PARAMETERS = {"rehearsal": "insecure_seed", "release": "algorithm", "question": "algorithm"}
COMMANDS = {"link": "broker"}


def find_new_name(package: str, name: str, public: list[str]) -> str | None:
    """The new name of what a package called otherwise, after a warning; None if it had no such name."""
    new = RENAMED.get(name)
    if new not in public:
        return None
    warnings.warn(
        f"{package}.{name} is now {package}.{new}; the old name goes in 0.4.",
        DeprecationWarning,
        stacklevel=3,
    )
    return new


def find_moved(module: str, name: str) -> Any:
    """What a module had by this name, after a warning."""
    path = MOVED.get(module, {}).get(name)
    if path is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new_module, _, new = path.partition(":")
    if path.startswith(__name__):
        text = f"{module}.{name} is now privada.parties.Inquiry"
    else:
        text = f"{module}.{name} is now {new_module}.{new}"
    warnings.warn(f"{text}; the old name goes in 0.4.", DeprecationWarning, stacklevel=3)
    return getattr(import_module(new_module), new)


def PlannedLearner(learner: Any, asks: Any, *, dispensable: Any = (), forecast: Any = None) -> Any:  # noqa: N802
    """An inquiry of a generator that has begun already, and so can be started once."""
    inquiry = import_module("privada.parties.protocol").Inquiry
    return inquiry(tuple(asks), iter([learner]).__next__, frozenset(dispensable), forecast)


def warn_of_parameter(old: str, new: str) -> None:
    """Say how a parameter is called now, to whoever called the caller of this function."""
    warnings.warn(f"{old}= is now {new}=; the old name goes in 0.4.", DeprecationWarning, stacklevel=3)


def accept_old_parameters(function: Function) -> Function:
    """Let a function take its parameters by the names of 0.2, too."""

    @functools.wraps(function)
    def accepting(*args: Any, **options: Any) -> Any:
        for old, new in PARAMETERS.items():
            if old in options:
                warn_of_parameter(old, new)
                options[new] = options.pop(old)
        return function(*args, **options)

    return accepting  # type: ignore[return-value]


def find_new_command(name: str) -> str:
    """The present name of a command; if it was renamed, a warning on stderr says so."""
    if name not in COMMANDS:
        return name
    # not a Python warning: users of the command line never see a DeprecationWarning
    sys.stderr.write(f"warning: privada {name} is now privada {COMMANDS[name]}; the old name goes in 0.4.\n")
    return COMMANDS[name]


__all__ = ["accept_old_parameters", "find_moved", "find_new_command", "find_new_name", "warn_of_parameter"]
