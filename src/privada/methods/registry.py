"""The registry of methods, over which contracts, commands and demos run.

A method is a package that announces itself in the entry-point group
``privada.methods`` and has a `METHOD` card. Everything on the card is a path
that is imported when it is first needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from typing import Any

from privada.exceptions import InputError, PrivadaWarning
from privada.methods.pictures import Picture
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import METHODS, Question


@dataclass(frozen=True, kw_only=True)
class Case:
    """Generated rows of one schema, and questions about them."""

    schema: Schema
    data: Mapping[str, Any]  # keyword arguments of Owner: data, and y or person where needed
    questions: tuple[Question, ...]


@dataclass(frozen=True, kw_only=True)
class Example(Case):
    """A small complete case of a method, generated, for contracts, audits and documentation.

    Every kind of question that the method registers and that releases something is in one of its `cases`;
    kinds that need other rows, such as another kind of label, are in ``further_cases``.
    """

    inquiry: Callable[[str], Inquiry[Any]]  # of the owner's name
    estimator: Callable[[int], Any] | None = None  # rehearsal seed -> estimator, not fitted
    fit_more: Mapping[str, Any] = field(default_factory=dict)  # public arguments of its fit
    further_cases: tuple[Case, ...] = ()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The example itself and its further cases."""
        return (self, *self.further_cases)

    @property
    def single_cases(self) -> tuple[Case, ...]:
        """One case for each question of all cases."""
        return tuple(
            Case(schema=case.schema, data=case.data, questions=(question,))
            for case in self.cases
            for question in case.questions
        )


@dataclass(frozen=True, kw_only=True)
class DemoRow:
    """What a method does on real data, in one row of ``privada demo``.

    Attributes
    ----------
    method, title : str
        Its name, and what was done in a sentence.
    holders : str
        Who holds what.
    guarantee : Guarantee
        What was promised to the private side, with relation and unit.
    score : str
        What the three numbers are.
    without, ours, clear : float
        The score without the private data, by the method, and without privacy.
    ledger : mapping
        Export of the ledger that paid for it.
    stamps : tuple of str
        What a reader must know beside the guarantee.
    better : "higher" or "lower"
        Which scores are better.
    surprise : str
        How the private score can be better than the one without privacy; shown where it is.
    picture : Picture, optional
        What is drawn beside the numbers.
    """

    method: str
    title: str
    holders: str
    guarantee: Guarantee
    score: str
    without: float
    ours: float
    clear: float
    ledger: Mapping[str, Any]
    stamps: tuple[str, ...] = ()
    better: str = "higher"
    surprise: str = ""
    picture: Picture | None = None

    @property
    def is_surprising(self) -> bool:
        """Whether the private score is better than the one without privacy."""
        return self.ours < self.clear if self.better == "lower" else self.ours > self.clear


@dataclass(frozen=True, kw_only=True)
class Method:
    """The card of one method.

    Attributes
    ----------
    name, title, paper
        What it is called, in words, and what it stands on.
    question_paths : tuple of "module:Class"
        Its questions.
    retired_paths : tuple of "module:Class"
        Kinds of questions that are read from files, and that owners answer no more.
    study_path : "module:function"
        ``(section, schemas, guarantee, home, seed) -> Inquiry`` for declarative
        studies; what it learns has a ``to_dict()``.
    example_path : "module:function"
        ``() -> Example``.
    demo_path : "module:function" or None
        ``(seed) -> DemoRow``; the seed is of public randomness only.
    template_path : "module:function" or None
        ``() -> StudyTemplate``, the example study that ``privada init --method NAME`` writes.
    model_path : "module:function" or None
        ``(questions, schema, guarantee) -> (result -> fitted estimator)``, for methods whose studies learn a
        model that can be saved. It is called before anything is charged, and raises `InputError` where the
        questions make no model.
    situation : Situation, optional
        When it is the method to take, for ``privada advise``.
    """

    name: str
    title: str
    paper: str
    question_paths: tuple[str, ...]
    retired_paths: tuple[str, ...] = ()
    study_path: str
    example_path: str
    demo_path: str | None = None
    template_path: str | None = None
    model_path: str | None = None
    situation: Situation | None = None

    def questions(self) -> tuple[type[Question], ...]:
        """The question classes."""
        return tuple(load(path) for path in self.question_paths)

    def retired_questions(self) -> tuple[type[Question], ...]:
        """The question classes that are only read."""
        return tuple(load(path) for path in self.retired_paths)

    def study(self) -> Callable[..., Inquiry[Any]]:
        """The function that makes a learner from a study's section."""
        return load(self.study_path)

    def demo(self, seed: int) -> DemoRow:
        """The row of ``privada demo``."""
        if self.demo_path is None:
            raise InputError(f"The method {self.name} has no demo.")
        return load(self.demo_path)(seed)

    def example(self) -> Example:
        """A small complete case."""
        return load(self.example_path)()


def load(path: str) -> Any:
    """What ``module:name`` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@cache
def methods() -> dict[str, Method]:
    """All installed methods, by name; one that cannot be loaded is named in a warning and left out."""
    found = {}
    for entry in metadata.entry_points(group=METHODS):
        try:
            found[entry.name] = entry.load().METHOD
        except (ImportError, AttributeError) as error:
            warnings.warn(f"The method {entry.name} cannot be loaded: {error}.", PrivadaWarning, stacklevel=2)
    return dict(sorted(found.items()))


def method(name: str) -> Method:
    """One installed method, or an `InputError` that lists them."""
    if name not in methods():
        raise InputError(f"Expected method to be one of {', '.join(methods())}, got {name!r}.")
    return methods()[name]


__all__ = ["Case", "DemoRow", "Example", "Method", "load", "method", "methods"]
