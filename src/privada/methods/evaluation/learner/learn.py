"""Ask an owner how well a model does, and read the answer."""

from __future__ import annotations

from typing import Any

from privada import _check
from privada.exceptions import InputError
from privada.methods.evaluation.learner.classification import Classification
from privada.methods.evaluation.learner.intervals import CONFIDENCE
from privada.methods.evaluation.learner.regression import Regression
from privada.methods.evaluation.questions.errors import ErrorMoments
from privada.methods.evaluation.questions.outcomes import OutcomeCounts
from privada.parties.protocol import AskOwner, Learner, one_round
from privada.privacy.relation import Relation
from privada.privacy.release import Release

Evaluation = Classification | Regression


@one_round
def learn(
    owner: str,
    question: OutcomeCounts | ErrorMoments,
    *,
    classes: tuple[Any, ...] = (),
    size: int | None = None,
    confidence: float = CONFIDENCE,
) -> Learner[Evaluation]:
    """Ask one owner once.

    Parameters
    ----------
    owner : str
    question : OutcomeCounts or ErrorMoments
    classes : tuple, default=()
        Public names of the classes; by default their codes.
    size : int, optional
        The declared number of rows. It is used where it is the true one, under replace-one.
    confidence : float, default=0.95
        Of every interval.
    """
    _check.probability(confidence=confidence)
    release = yield AskOwner(owner, question)
    return read_release(question, release, classes=classes, size=size, confidence=confidence)


def read_release(
    question: OutcomeCounts | ErrorMoments,
    release: Release,
    *,
    classes: tuple[Any, ...] = (),
    size: int | None = None,
    confidence: float = CONFIDENCE,
) -> Evaluation:
    """Read a release as an evaluation."""
    if not isinstance(question, (OutcomeCounts, ErrorMoments)):
        raise InputError(f"Expected a question of evaluation, got {type(question).__name__}.")
    exact = size if question.guarantee.relation is not Relation.ADD_REMOVE else None
    if isinstance(question, ErrorMoments):
        return Regression(question=question, release=release, size=exact, confidence=confidence)
    return Classification(
        question=question,
        release=release,
        classes=tuple(classes) or tuple(range(question.n_classes)),
        size=exact,
        confidence=confidence,
    )


__all__ = ["Evaluation", "learn", "read_release"]
