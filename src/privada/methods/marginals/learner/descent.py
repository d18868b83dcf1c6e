"""A linear model of labels by a noisy descent: how it is sized, asked for, and what is made of it.

The default wherever a guarantee allows Gaussian noise. Everything but the releases is public: features are
standardised by the source and held to three of its deviations, a record's pull is shortened to about half of
what it could be, and the descent lasts as long as its noise stays below a fixed drift of the scores, or until
it has converged. Constants were chosen on the development half of the tables
(``docs/measurements/marginals.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.linear.learner import choose_step_size, learn_linear
from privada.methods.linear.questions.descent import MarginalsDescent
from privada.methods.linear.questions.public import gaussian
from privada.methods.marginals.learner.fitted import (
    MarginalFit,
    RegressionFit,
    SyntheticNumbers,
    SyntheticTarget,
)
from privada.methods.marginals.learner.learn import Public
from privada.methods.marginals.learner.public import check_announced
from privada.methods.marginals.learner.regression import check_regressor, label_spread
from privada.methods.marginals.questions import LabelHistogram
from privada.parties.protocol import AskOwner, Inquiry, Learner, one_round
from privada.privacy.guarantee import Guarantee, split_budget

LIMIT = 3.0  # public deviations, to which a feature is held: outliers cost more than they tell
CONSTANT = 0.3  # the constant feature, where a usual row has length 1
STEPS = 80  # more cost time, not privacy
PULL = 0.5  # of a class's largest pull, √2: beyond it records pull alike
RESIDUAL = 0.85  # of a number: deviations of the label, beyond which records of usual length pull alike
DRIFT = 0.8  # of a score of a usual row, by noise, at the end
PACE = 0.5  # of the step that the public curvature allows: the target's may be larger
HISTOGRAM_SHARE, BINS = 0.2, 32  # of μ², to find where numeric labels lie


@dataclass(frozen=True, eq=False)
class DescentModel:
    """Scores that are linear in standardised features held to ``±LIMIT``; scikit-learn's methods.

    Attributes
    ----------
    weights : array of shape (features + 1, outputs)
        The constant's first.
    radius : float
    middle, unit : float
        Of a number.
    """

    weights: FloatArray
    radius: float
    middle: float = 0.0
    unit: float = 1.0
    activation: str = "relu"  # a network of two layers says the same

    def scores(self, standard: FloatArray) -> FloatArray:
        """One for each class, or one."""
        inside = np.clip(standard, -LIMIT, LIMIT) / self.radius
        return np.asarray(inside @ self.weights[1:] + CONSTANT * self.weights[0])

    @property
    def classes_(self) -> npt.NDArray[np.int64]:
        """All class codes."""
        return np.arange(self.weights.shape[1])

    @property
    def coefs_(self) -> list[FloatArray]:
        """Layers of the same network: ``clip(u) = relu(u + limit) - relu(u - limit) - limit``."""
        slopes = self.weights[1:] / self.radius
        both = np.eye(len(slopes))
        return [np.hstack([both, both]), np.vstack([slopes, -slopes])]

    @property
    def intercepts_(self) -> list[FloatArray]:
        """Of the same network."""
        slopes = self.weights[1:] / self.radius
        ends = np.repeat([LIMIT, -LIMIT], len(slopes))
        return [ends, CONSTANT * self.weights[0] - LIMIT * slopes.sum(axis=0)]

    def predict_proba(self, standard: FloatArray) -> FloatArray:
        """Class probabilities."""
        from scipy.special import softmax

        return np.asarray(softmax(self.scores(standard), axis=1))

    def predict(self, standard: FloatArray) -> npt.NDArray[Any]:
        """Class codes, or numbers of a model of one output."""
        scores = self.scores(standard)
        if scores.shape[1] == 1:
            return np.asarray(self.middle + self.unit * scores[:, 0])
        return np.asarray(scores.argmax(axis=1))


def ask_descent(
    public: Public, *, guarantee: Guarantee, size: int, middle: float = 0.0, unit: float = 1.0
) -> MarginalsDescent:
    """The default descent, from public quantities alone; of a number if the learner knows no classes."""
    gaussian(guarantee, "A descent")
    n_classes = len(public.classes)
    inside = np.clip(public.standard, -LIMIT, LIMIT)
    lengths = np.linalg.norm(inside, axis=1)
    radius = max(float(np.median(lengths)), 1e-9) if len(lengths) else 1.0
    usual = math.hypot(1.0, CONSTANT)
    bound = usual * (PULL * math.sqrt(2) if n_classes else RESIDUAL)
    # the largest eigenvalue of the source's second moments; rows longer than usual count less
    Z = np.column_stack([np.full(len(inside), CONSTANT), inside / radius])
    shorter = Z * np.minimum(1.0, usual / np.linalg.norm(Z, axis=1, keepdims=True))
    curvature = float(np.linalg.eigvalsh(shorter.T @ Z / len(Z))[-1])
    return MarginalsDescent(
        size=size,
        loss="softmax" if n_classes else "squared",
        outputs=max(1, n_classes),
        centre=public.mean,
        spread=public.scale * radius,
        limit=LIMIT / radius,
        constant=CONSTANT,
        intercepts=None if n_classes else np.array([middle / unit]),
        unit=unit,
        bound=bound,
        steps=STEPS,
        step_size=choose_step_size(
            drift=DRIFT,
            stable=PACE * (4.0 if n_classes else 1.0) / curvature,
            steps=STEPS,
            bound=bound,
            size=size,
            guarantee=guarantee,
        ),
        guarantee=guarantee,
    )


@one_round
def learn_descent(owner: str, question: MarginalsDescent, public: Public) -> Learner[MarginalFit]:
    """Ask once, label the source, and train the learner's own classifier on it if there is one."""
    public.check()
    fit = yield from learn_linear({owner: question})
    model = DescentModel(fit.weights, LIMIT / question.limit)
    probabilities, weights = model.predict_proba(public.standard), np.ones(len(public.source))
    if public.classifier is not None:
        return public.fit(probabilities, weights, releases=fit.releases)
    synthetic = SyntheticTarget(
        X=public.source,
        probabilities=probabilities,
        weights=weights,
        guarantees=tuple(str(release.guarantee) for release in fit.releases),
    )
    return MarginalFit(
        model=model,
        mean=public.mean,
        scale=public.scale,
        synthetic=synthetic,
        releases=fit.releases,
        classes=public.classes,
    )


def learn_number(
    owner: str, public: Public, *, bounds: tuple[float, float], guarantee: Guarantee, size: int
) -> Inquiry[RegressionFit]:
    """Ask where labels lie, then descend on what is left of them.

    Parameters
    ----------
    public : Public
        Its classifier is a regressor with ``sample_weight``, if it has one.
    bounds : (low, high)
        Public bounds of the label.
    guarantee : Guarantee
        Of both questions together.
    size : int
        Announced number of rows.
    """
    from sklearn.base import clone

    gaussian(guarantee, "A descent")
    check_regressor(public, bounds)
    check_announced(size)
    first, rest = split_budget(guarantee, HISTOGRAM_SHARE, gaussian=True)
    low, high = bounds
    counted = LabelHistogram(low=float(low), high=float(high), bins=BINS, guarantee=first)

    def asking() -> Learner[RegressionFit]:
        histogram = yield AskOwner(owner, counted)
        middle, unit = label_spread(counted, histogram, size)
        question = ask_descent(public, guarantee=rest, size=size, middle=middle, unit=unit)
        fit = yield from learn_linear({owner: question})
        releases = (histogram, *fit.releases)
        model = DescentModel(fit.weights, LIMIT / question.limit, middle, unit)
        labels, weights = np.clip(model.predict(public.standard), *bounds), np.ones(len(public.source))
        regressor: Any = model
        if public.classifier is not None:
            regressor = clone(public.classifier).fit(public.standard, labels, sample_weight=weights)
        synthetic = SyntheticNumbers(
            X=public.source,
            labels=labels,
            weights=weights,
            guarantees=tuple(str(release.guarantee) for release in releases),
        )
        return RegressionFit(
            model=regressor, mean=public.mean, scale=public.scale, synthetic=synthetic, releases=releases
        )

    # the question that depends on the histogram is represented by one of the same price
    alike = ask_descent(public, guarantee=rest, size=size, middle=(low + high) / 2, unit=high - low)
    return Inquiry((AskOwner(owner, counted), AskOwner(owner, alike)), asking)


__all__ = ["DescentModel", "ask_descent", "learn_descent", "learn_number"]
