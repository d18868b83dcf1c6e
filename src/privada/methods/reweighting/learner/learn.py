"""What is made of the releases: a linear model for the target. All post-processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.linear.learner.trajectory import averaged, trajectory
from privada.methods.reweighting.learner.shrinkage import Filter, Shrinkage, shrunk
from privada.methods.reweighting.questions.descent import Descent
from privada.methods.reweighting.questions.discrepancy import Discrepancy
from privada.methods.reweighting.questions.portrait import Portrait
from privada.methods.reweighting.questions.selection import Selection
from privada.parties.protocol import Ask, Foreseen, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]
STEPS = (0.0, 0.5, 1.0)  # of the correction, among which private validation chooses


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptedModel:
    """A linear model adapted to a private target.

    Attributes
    ----------
    coef, intercept : arrays of shape (features, outputs) and (outputs,)
        Scores are ``x @ coef + intercept``, in the features' own units.
    alpha : float
        Weight of the public data.
    discrepancy : float or None
        As released, in squared units of the label.
    guarantee : Guarantee
        Of all releases together.
    releases : tuple of Release
    correction : array of shape (k, outputs)
        V, in the coordinates of ``question``'s map.
    step : float
        How much of the correction the model takes: all of it, or what private validation chose (0: the
        public model).
    """

    coef: FloatArray
    intercept: FloatArray
    alpha: float
    guarantee: Guarantee
    releases: tuple[Release, ...]
    question: Descent = field(repr=False)
    correction: FloatArray = field(repr=False)
    discrepancy: float | None = None
    step: float = 1.0

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores of public rows."""
        return np.asarray(X @ self.coef + self.intercept)

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        stamps = sorted({stamp for release in self.releases for stamp in release.stamps})
        return {
            "guarantee": str(self.guarantee),
            "stamps": stamps,
            "loss": self.question.loss,
            "alpha": self.alpha,
            "discrepancy": self.discrepancy,
            "step": self.step,
            "steps": self.question.steps,
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
        }


def believed(question: Descent, release: Release, known: Shrinkage) -> FloatArray:
    """The averaged correction, shrunk by what is known of its errors (`shrinkage`)."""
    h = float(question.curvature[0, 0])
    draw = question.plan.draws[question.names()[0]]
    assert isinstance(draw, Gaussian)
    made = Filter.of(
        known.curvatures, alpha=question.alpha, step=question.step_size * h, steps=question.steps
    )
    variance = known.variance(made, noise=draw.scale / question.size / h, rows=question.size)
    return shrunk(averaged(question, release), variance, reach=known.reach)


def model(
    question: Descent,
    release: Release,
    *,
    guarantee: Guarantee | None = None,
    first: Sequence[Release] = (),
    known: Shrinkage | None = None,
) -> AdaptedModel:
    """The model that a descent's release describes; ``first`` are the releases before it."""
    V = averaged(question, release) if known is None else believed(question, release, known)
    told = [each["discrepancy"][0] for each in first if each.kind == Discrepancy.kind]
    return AdaptedModel(
        coef=question.weights + question.transform @ V,
        intercept=question.intercepts + question.shift @ V,
        alpha=question.alpha,
        guarantee=release.guarantee if guarantee is None else guarantee,
        releases=(*first, release),
        question=question,
        correction=V,
        discrepancy=float(max(0.0, told[0])) if told else None,
    )


def learn(owner: str, question: Descent, known: Shrinkage | None = None) -> Learner[AdaptedModel]:
    """Ask one owner once."""
    release = yield Ask(owner, question)
    return model(question, release, known=known)


def learn_after(
    owner: str,
    first: Discrepancy | None,
    second: Callable[[float | None], Portrait | None],
    then: Callable[[float | None, Release | None], tuple[Descent, Shrinkage | None]],
    *,
    guarantee: Guarantee,
) -> Learner[AdaptedModel]:
    """Ask for the discrepancy and a portrait where they are wanted, then for the descent."""
    releases: list[Release] = []
    discrepancy, portrait = None, None
    if first is not None:
        releases.append((yield Ask(owner, first)))
        only_releases(releases[-1])
        discrepancy = float(max(0.0, releases[-1]["discrepancy"][0]))
    asked = second(discrepancy)
    if asked is not None:
        portrait = yield Ask(owner, asked)
        only_releases(portrait)
        releases.append(portrait)
    question, known = then(discrepancy, portrait)
    release = yield Ask(owner, question)
    return model(question, release, guarantee=guarantee, first=releases, known=known)


def learn_from(
    owner: str,
    first: Descent,
    then: Callable[[Release], tuple[Descent, Shrinkage | None]],
    *,
    guarantee: Guarantee,
) -> Learner[AdaptedModel]:
    """Ask for a gradient, then for the descent that starts where it says."""
    release = yield Ask(owner, first)
    only_releases(release)
    question, known = then(release)
    last = yield Ask(owner, question)
    return model(question, last, guarantee=guarantee, first=(release,), known=known)


def learn_selected(
    owner: str,
    question: Descent,
    known: Shrinkage | None = None,
    *,
    largest_loss: float,
    share: Guarantee,
    guarantee: Guarantee,
) -> Learner[AdaptedModel]:
    """Ask for the descent, then how much of its correction does best on the private rows.

    Candidates are the public model, half of the correction and all of it. The rows are those that were
    descended on; privacy is paid for, and a noisy gradient overfits little.
    """

    def choice(moves: tuple[FloatArray, FloatArray]) -> Selection:
        return Selection(
            weights=np.array([question.weights + step * moves[0] for step in STEPS]),
            intercepts=np.array([question.intercepts + step * moves[1] for step in STEPS]),
            loss=question.loss,
            largest_loss=largest_loss,
            guarantee=share,
            salt=question.salt,
        )

    alike = choice((np.zeros_like(question.weights), np.zeros_like(question.intercepts)))
    asking = _selected(owner, question, known, choice, guarantee=guarantee)
    return Foreseen(asking, [Ask(owner, question), Ask(owner, alike)])


def _selected(
    owner: str,
    question: Descent,
    known: Shrinkage | None,
    choose: Callable[[tuple[FloatArray, FloatArray]], Selection],
    *,
    guarantee: Guarantee,
) -> Learner[AdaptedModel]:
    release = yield Ask(owner, question)
    whole = model(question, release, known=known)
    moves = (whole.coef - question.weights, whole.intercept - question.intercepts)
    choice = yield Ask(owner, choose(moves))
    only_releases(choice)
    step = STEPS[int(np.asarray(choice["choice"]).reshape(-1)[0])]
    return replace(
        whole,
        coef=question.weights + step * moves[0],
        intercept=question.intercepts + step * moves[1],
        guarantee=guarantee,
        releases=(release, choice),
        step=step,
    )


__all__ = [
    "AdaptedModel",
    "averaged",
    "believed",
    "learn",
    "learn_after",
    "learn_selected",
    "model",
    "trajectory",
]
