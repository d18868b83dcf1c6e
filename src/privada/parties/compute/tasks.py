"""What travels to a worker: the name of a function of an answerer, and the question as a file.

A function that was made on the way, as a lambda, has no name and is refused: workers run nothing but
the code that is installed there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from privada.exceptions import AnswerError
from privada.privacy.release import Question

_PLAIN = (np.ndarray, np.generic, bool, int, float, str)


@dataclass(frozen=True, eq=False)
class QuestionFile:
    """A question in a task, as its file."""

    blob: bytes


@dataclass(frozen=True, eq=False)
class Task:
    """A function by its place, and its first arguments.

    >>> from functools import partial
    >>> from privada._check import positive
    >>> Task.of(partial(positive)).name
    'positive'
    """

    module: str
    name: str
    arguments: tuple[Any, ...] = ()

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Task:
        """Describe a function of a module, or a `functools.partial` of one."""
        inner = function.func if isinstance(function, partial) else function
        arguments = function.args if isinstance(function, partial) else ()
        if isinstance(function, partial) and function.keywords:
            raise AnswerError("A function for a cluster takes its first arguments by place.")
        module, name = getattr(inner, "__module__", ""), getattr(inner, "__qualname__", "")
        if not module or not name.isidentifier() or getattr(import_module(module), name, None) is not inner:
            raise AnswerError("A cluster runs functions of modules only, not one that was made on the way.")
        return cls(module, name, tuple(_packed(each) for each in arguments))

    @property
    def question(self) -> bytes:
        """The file of the question, if there is one; none is empty."""
        return next((each.blob for each in self.arguments if isinstance(each, QuestionFile)), b"")

    def without_question(self) -> Task:
        """The same task, to which the question's file is given apart."""
        rest = [QuestionFile(b"") if isinstance(each, QuestionFile) else each for each in self.arguments]
        return Task(self.module, self.name, tuple(rest))

    def function(self, question: bytes = b"") -> Callable[[Any], Any]:
        """The function, found in the code that is installed here."""
        inner = getattr(import_module(self.module), self.name)
        return partial(inner, *(_unpacked(each, question) for each in self.arguments))


def _packed(argument: Any) -> Any:
    if isinstance(argument, Question):
        return QuestionFile(argument.to_bytes())
    if not isinstance(argument, _PLAIN):
        raise AnswerError(f"An argument of type {type(argument).__name__} does not travel to a cluster.")
    return argument


def _unpacked(argument: Any, question: bytes) -> Any:
    return read_question(argument.blob or question) if isinstance(argument, QuestionFile) else argument


@lru_cache(maxsize=16)
def read_question(blob: bytes) -> Question:
    """A question from its file, which is checked once."""
    return Question.from_bytes(blob)


__all__ = ["QuestionFile", "Task", "read_question"]
