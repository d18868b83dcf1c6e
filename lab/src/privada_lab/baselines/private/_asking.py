"""What the private baselines share: a question with plain fields, and one asking of an owner in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privada import _check
from privada.exceptions import InputError
from privada.parties.in_memory import owner_in_memory
from privada.parties.permissions import Policy
from privada.parties.schema import Category, Schema
from privada.privacy.relation import Relation
from privada.privacy.release import Question, Release


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BaselineQuestion(Question):
    """A question whose fields are plain values and arrays."""

    @property
    def replaces(self) -> bool:
        """Whether a neighbour has another row in place of one, not one row more or less."""
        return self.guarantee.relation is not Relation.ADD_REMOVE

    @property
    def rows(self) -> int:
        """Rows of one unit, at most."""
        return self.guarantee.unit.max_rows


def ask(
    question: Question, X: Any, y: Any = None, *, schema: Schema, insecure_seed: int | None = None
) -> Release:
    """Answer a question from rows in memory, under a budget that it uses up.

    A baseline that is known in idealised arithmetic only (K-norm noise) is allowed it; its release says so.
    """
    owner = owner_in_memory(
        np.asarray(X),
        [question],
        y=None if y is None else np.asarray(y),
        schema=schema,
        budget=question.guarantee,
        policy=Policy(idealised=any(draw.idealised for draw in question.plan.draws.values())),
        insecure_seed=insecure_seed,
        allow_empty=True,
    )
    return owner.answer(question)


def ball_schema(
    norm_bound: float | None, *, width: int, size: int | None, classes: Any = None, labelled: bool = False
) -> Schema:
    """Public bounds of rows in a ball around 0, and public classes."""
    if norm_bound is None:
        raise InputError("Expected norm_bound, the radius of a public ball; none is guessed.")
    radius = _check.positive(norm_bound=norm_bound)
    label = Category(name="label", values=class_list(classes)) if labelled else None
    return Schema.of_numbers(bounds=(-radius, radius), width=width, size=size, label=label)


def class_list(classes: Any) -> tuple[Any, ...]:
    """The public classes, given by the caller."""
    if classes is None:
        raise InputError("Expected classes, the public list of labels; none are taken from y.")
    return tuple(classes)


def row_width(X: Any) -> int:
    """Number of columns of private rows; their number is not looked at."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(f"Expected X to be a matrix, got {len(shape)} axes.")
    return int(shape[1])


__all__ = ["BaselineQuestion", "ask", "ball_schema", "class_list", "row_width"]
