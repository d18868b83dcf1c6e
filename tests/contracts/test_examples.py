"""Every kind of question that releases something is in an example, or neither contracts nor audits see it."""

from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages

import pytest

import privada
from privada.methods import methods
from privada.privacy import Laplace, Question
from privada.privacy.mechanism import Plan

# questions that no method registers, with what audits them instead
ELSEWHERE = {
    "model_selection.random_stopping": "a search of one process, which `audit_search` runs whole",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WithoutExample(Question):
    kind = "cells.without-example"
    answered_by = f"{__name__}:nobody"

    def planned(self):
        return Plan(draws={"count": Laplace(sensitivity=1, scale=1.0)})


def kinds_without_example(method):
    """A question that discloses raw rows has no guarantee to audit, and only a curator asks it."""
    examples = {case.questions[0].kind for case in method.example().single_cases}
    return {kind.kind for kind in method.questions() if not kind.discloses} - examples


@pytest.mark.parametrize("name", list(methods()))
def test_every_registered_kind_has_an_example(name):
    assert kinds_without_example(methods()[name]) == set()


def test_a_kind_without_an_example_is_noticed():
    cells = methods()["cells"]
    paths = (*cells.question_paths, f"{__name__}:WithoutExample")
    more = type("More", (cells,), {"question_paths": paths, "__module__": cells.__module__})
    assert kinds_without_example(more) == {"cells.without-example"}


def installed_questions(kind=Question):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from installed_questions(subclass)


def test_every_question_of_the_product_is_registered_or_audited_elsewhere():
    for module in walk_packages(privada.__path__, "privada."):
        if not module.name.startswith(("privada.lab", "privada.cli")):
            import_module(module.name)
    product = {
        question.kind
        for question in installed_questions()
        if question.__module__.startswith("privada.")
        and not question.__module__.startswith("privada.lab")
        and hasattr(question, "kind")
    }
    registered = {
        question.kind
        for method in methods().values()
        for question in (*method.questions(), *method.retired_questions())
    }
    assert product - registered == set(ELSEWHERE)
