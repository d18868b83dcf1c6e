"""PCnvxAdap and PNCnvxAdap as the paper composes them: the discrepancy first, then the descent.

The discrepancy gets 5 % of μ². Its released value, projected to [0, B], is the discrepancy of the objective
on which the descent goes, with the other 95 %. Both are Gaussian, so ``μ² = 0.05 μ² + 0.95 μ²`` is the whole
price; what is made of the releases is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import losses, public
from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
from privada.methods.reweighting.questions.discrepancy import Discrepancy, FiniteDiscrepancy
from privada.methods.reweighting.questions.supremum import moments
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

Adaptation = ConvexAdaptation | NonconvexAdaptation
SHARE = 0.05  # of μ², for the discrepancy
_SCALES = (1.0, 0.5, -0.5, -1.0)  # of the source's own minimiser: the hypotheses of the discrepancy
_FIT_STEPS = 300


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptedPredictor:
    """A linear predictor of clipped features, adapted to a private target.

    Attributes
    ----------
    coef : array of shape (features,) or (features, classes)
    discrepancy : float
        As released, projected to [0, B].
    guarantee : Guarantee
        Of both releases together.
    releases : tuple of Release
    question : ConvexAdaptation or NonconvexAdaptation
        What was asked last.
    """

    coef: FloatArray
    discrepancy: float
    guarantee: Guarantee
    releases: tuple[Release, ...]
    question: Adaptation = field(repr=False)

    def scores(self, X: npt.ArrayLike) -> FloatArray:
        """Scores of public rows, which are clipped to the ball as those that were learned from."""
        return np.asarray(Ball(radius=self.question.r).clip(X) @ self.coef)

    def probabilities(self, X: npt.ArrayLike) -> FloatArray:
        """Class probabilities of public rows."""
        scores = self.scores(X)
        if scores.ndim == 2:
            return losses.probabilities("softmax", scores)
        second = losses.probabilities("logistic", scores[:, None])
        return np.hstack([1 - second, second])

    def linear_form(self) -> tuple[FloatArray, FloatArray]:
        """Weights and intercepts in the features' own units, for rows of a norm that was not clipped."""
        weights = self.coef.reshape(len(self.coef), -1)
        return weights, np.zeros(weights.shape[1])

    def axes(self, schema: Any) -> dict[str, tuple[Any, ...]]:
        """Names along the lists of `to_dict`: features, and classes where there are more than two."""
        classes = (tuple(str(value) for value in schema.label.values),) if self.coef.ndim == 2 else ()
        return {"coef": (schema.features, *classes)}

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.guarantee),
            "stamps": sorted({stamp for release in self.releases for stamp in release.stamps}),
            "questions": [release.kind for release in self.releases],
            "discrepancy": self.discrepancy,
            "alpha": self.question.penalties.alpha,
            "steps": self.question.steps,
            "coef": self.coef.tolist(),
        }


def learn_convex(owner: str, question: ConvexAdaptation) -> Inquiry[AdaptedPredictor]:
    """Ask for the exact discrepancy, then for PCnvxAdap.

    Parameters
    ----------
    owner : str
    question : ConvexAdaptation
        Under the guarantee of the whole; its penalties' discrepancy is 0, for it is asked for.

    Privacy
    -------
    Unit and relation are the question's. `Discrepancy` and `ConvexAdaptation` have the proofs.
    """
    _only(ConvexAdaptation, question)
    share, last = _split(question)
    ball, features = Ball(radius=question.r), question.source.shape[1]
    first = Discrepancy(
        size=question.size,
        weights=np.zeros(features),
        transform=np.eye(features),
        shift=np.zeros(features),
        source_moments=moments(ball.clip(question.source), np.clip(question.source_labels, -1, 1)),
        radius=question.r,
        hypothesis_radius=question.A,
        guarantee=share,
        salt=question.salt,
    )
    return _learned(owner, first, last, question.guarantee)


def learn_nonconvex(
    owner: str, question: NonconvexAdaptation, *, hypotheses: npt.ArrayLike | None = None
) -> Inquiry[AdaptedPredictor]:
    """Ask for the discrepancy over a few public hypotheses, then for PNCnvxAdap.

    The exact supremum over all hypotheses is out of reach, so it is that over ``hypotheses``, which is less
    or equal. Their losses are clipped to B, and their features are not clipped, on both sides alike.

    Parameters
    ----------
    owner : str
    question : NonconvexAdaptation
        Under the guarantee of the whole; its penalties' discrepancy is 0, for it is asked for.
    hypotheses : array of shape (hypotheses, *weights), optional
        Public. By default the source's own minimiser in the ball, half of it, and their opposites.

    Privacy
    -------
    Unit and relation are the question's. `FiniteDiscrepancy` and `NonconvexAdaptation` have the proofs.
    """
    _only(NonconvexAdaptation, question)
    share, last = _split(question)
    loss = "logistic" if question.n_classes == 2 else "softmax"
    if hypotheses is None:
        weights = _public_hypotheses(question, loss)
    else:
        weights = np.asarray(hypotheses, dtype=np.float64)
        if weights.shape[1:] != question.shape or not len(weights):
            sizes = ", ".join(map(str, question.shape))
            raise InputError(f"Expected hypotheses of shape (1 or more, {sizes}), got {weights.shape}.")
        flat = public.matrix(hypotheses=weights.reshape(len(weights), -1))
        weights = flat.reshape(weights.shape)
    # mean losses of the public rows, clipped to B
    scores = (question.source @ w.reshape(len(w), -1) for w in weights)
    public_losses = [
        losses.clipped(loss, part, question.source_labels, question.largest_loss).mean() for part in scores
    ]
    first = FiniteDiscrepancy(
        size=question.size,
        weights=weights,
        intercepts=np.zeros((len(weights), *question.shape[1:])),
        source_losses=np.array(public_losses),
        loss=loss,
        largest_loss=question.largest_loss,
        guarantee=share,
        salt=question.salt,
    )
    return _learned(owner, first, last, question.guarantee)


def _only(kind: type[ConvexAdaptation] | type[NonconvexAdaptation], question: Any) -> None:
    if not isinstance(question, kind):
        raise InputError(f"Expected question to be {kind.__name__}, got {type(question).__name__}.")
    if discrepancy := question.penalties.discrepancy:
        raise InputError(f"Expected penalties of discrepancy 0, for it is asked for, got {discrepancy:g}.")


def _split(question: Adaptation) -> tuple[Guarantee, Adaptation]:
    """The guarantee of the discrepancy, and the descent under the rest."""
    share, rest = public.shares(question.guarantee, SHARE)
    assert share is not None
    last = replace(question, guarantee=rest)
    _ = last.plan  # what cannot be planned fails here, before anything is charged
    return share, last


def _learned(
    owner: str, first: Discrepancy | FiniteDiscrepancy, last: Adaptation, guarantee: Guarantee
) -> Inquiry[AdaptedPredictor]:
    """Ask for the discrepancy, then for the descent on the objective that it makes."""

    def asking() -> Learner[AdaptedPredictor]:
        distance = yield AskOwner(owner, first)
        only_releases(distance)
        value = float(np.clip(distance["discrepancy"][0], 0.0, first.largest_loss))
        question = replace(last, penalties=replace(last.penalties, discrepancy=value))
        release = yield AskOwner(owner, question)
        only_releases(release)
        return AdaptedPredictor(
            coef=release["coef"],
            discrepancy=value,
            guarantee=guarantee,
            releases=(distance, release),
            question=question,
        )

    return Inquiry((AskOwner(owner, first), AskOwner(owner, last)), asking)


def _public_hypotheses(question: NonconvexAdaptation, loss: str) -> FloatArray:
    """Multiples of the predictor that projected gradient finds on the source alone."""
    X, y = Ball(radius=question.r).clip(question.source), question.source_labels
    onehot = y[:, None] if question.n_classes == 2 else np.eye(question.n_classes)[y.astype(np.int64)]
    # Projected gradient with the step of the loss's largest curvature, 1/2 for each squared length.
    w = np.zeros((X.shape[1], onehot.shape[1]))
    curvature = max(float((X**2).sum(axis=1).mean()) / 2, 1e-300)
    for _ in range(_FIT_STEPS):
        push = losses.probabilities(loss, X @ w) - onehot
        w = w - X.T @ push / (len(X) * curvature)
        w = w * min(1.0, question.A / max(float(np.linalg.norm(w)), 1e-300))
    return np.array([scale * w.reshape(question.shape) for scale in _SCALES])


__all__ = ["SHARE", "AdaptedPredictor", "learn_convex", "learn_nonconvex"]
