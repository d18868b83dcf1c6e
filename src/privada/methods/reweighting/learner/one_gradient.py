"""One gradient at zero: instead of a descent where noise is loud, before one to choose its start.

A descent spends its budget on correcting the public model where it is, and must undo that model where the
domains are unrelated. A gradient at zero, ``g = (1/n) Σ z ⊗ (p(0) - y)``, is the correlation of features and
classes: a `Descent` of one step from nothing. What is believed of g is made afterwards, for nothing. Either
the target is like the source, and g lies about ``g_p``, what the public model would have given, or it is not,
and g lies about 0; in both cases by some share of what it could, in each direction as much as public rows
vary there. The evidence of each case weighs what it makes of the noisy g (`Belief`), and one Newton step with
the public curvature, ``-(h (C + λ))⁻¹ ĝ``, makes a model.

Where the noise is loud, that is the model: a target like the source gets the public one, an unrelated
target one of its own, a doubtful one something between. Elsewhere a tenth of the budget asks for the
gradient, and a descent starts between the public model and the other case's, as the evidence has it.

The constants were chosen on digits, wine, breast cancer and generated pairs, classes balanced or not, none of
which a figure scores.

*Privacy*: the proof is that of `Descent`, of one step; the rest is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp, softmax

from privada.methods.linear.questions import losses
from privada.methods.reweighting.learner import geometry
from privada.methods.reweighting.learner.learn import AdaptedModel
from privada.methods.reweighting.learner.stage import Source
from privada.methods.reweighting.questions.descent import Descent
from privada.parties.protocol import Ask, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]
LOUD = 0.04  # length of the noise on g over the most that a row can say, above which no descent is asked
INSIDE = 0.1  # of the public rows: nearly all are shortened to one length, so that noise is the least
PENALTY = 1.0  # of the Newton step, in mean curvatures: the target's curvature is not the source's
SHARES = (0.03, 0.1, 0.3, 1.0)  # of the most that a gradient can lie away from what was expected


def loudness(guarantee: Guarantee, *, size: int, directions: int) -> float:
    """Usual length of the noise on the mean gradient, in units of a row's largest.

    >>> from privada.privacy import Approximate
    >>> loud = Approximate(epsilon=1, delta=1e-5, relation="replace-one")
    >>> round(loudness(loud, size=60, directions=13), 2), round(loudness(loud, size=5000, directions=100), 3)
    (0.45, 0.015)
    """
    return 2 * guarantee.unit.max_rows / size / guarantee.gaussian_mu() * math.sqrt(directions)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneGradient:
    """The question for one gradient at zero, and what is made of its answer."""

    source: Source
    size: int
    guarantee: Guarantee
    salt: str = ""

    @property
    def radius(self) -> float:
        """Most public rows are shortened to it: they say a little less, and all of them get less noise."""
        return float(np.quantile(np.linalg.norm(self._rows, axis=1), INSIDE))

    @cached_property
    def _rows(self) -> FloatArray:
        """Public rows in their principal coordinates."""
        return np.asarray(self.source.rows @ self.source.spectrum.vectors)

    @property
    def question(self) -> Descent:
        """One step from nothing, in the source's principal coordinates; no pull at zero is shortened."""
        transform, shift = self.source.scaling.unscaled(self.source.spectrum.vectors)
        outputs = self.source.start.shape[1]
        return Descent(
            size=self.size,
            weights=np.zeros((len(transform), outputs)),
            intercepts=np.zeros(outputs),
            transform=transform,
            shift=shift,
            curvature=np.eye(transform.shape[1]),
            radius=self.radius,
            threshold=math.log(max(outputs, 2)),
            alpha=0.0,
            loss=self.source.loss,
            steps=1,
            guarantee=self.guarantee,
            salt=self.salt,
        )

    def learner(self, owner: str) -> Learner[AdaptedModel]:
        """Ask once."""
        question = self.question
        release = yield Ask(owner, question)
        return self.model(question, release)

    def model(self, question: Descent, release: Release) -> AdaptedModel:
        """The Newton step from zero, along what is believed of the gradient."""
        belief = self.belief(question, release)
        V = belief.step(belief.mean)
        return AdaptedModel(
            coef=question.transform @ V,
            intercept=question.shift @ V,
            alpha=question.alpha,
            guarantee=release.guarantee,
            releases=(release,),
            question=question,
            correction=V,
        )

    def start(self, question: Descent, release: Release) -> FloatArray:
        """Where a descent begins: between the public model and one that owes it nothing, by the evidence."""
        belief = self.belief(question, release)
        own = self.source.spectrum.vectors @ belief.step(belief.unrelated)
        return np.asarray(belief.trust * self.source.start + (1 - belief.trust) * own)

    def belief(self, question: Descent, release: Release) -> Belief:
        """What a released gradient says, in the principal directions of the rows as they were clipped."""
        only_releases(release)
        draw = question.plan.draws["gradient_0"]
        assert isinstance(draw, Gaussian)
        heard, noise = release["gradient_0"] / question.size, draw.scale / question.size
        rows, pull, most = self._expected(question)
        curvatures, turn = np.linalg.eigh(rows.T @ rows / len(rows))
        curvatures = np.maximum(curvatures, 0.0)
        public = turn.T @ (rows.T @ pull) / len(rows)
        variance = noise**2 + most * curvatures / question.size
        steady = geometry.CURVATURE[question.loss] * (curvatures + PENALTY * curvatures.mean())
        return Belief.of(turn.T @ heard, public, curvatures, variance, 2 * most, turn=turn / steady)

    def _expected(self, question: Descent) -> tuple[FloatArray, FloatArray, float]:
        """What the public model makes of a gradient at zero.

        Public rows as they would be clipped; their pulls, if it gave the labels; and the mean square of any
        record's pull at zero.
        """
        loss, scores = question.loss, self.source.rows @ self.source.start
        at_zero = losses.probabilities(loss, np.zeros_like(scores))
        length = float((1 - at_zero[0]) @ at_zero[0])
        rows = geometry.clipped(self._rows, question.bound / math.sqrt(length))
        return rows, at_zero - losses.probabilities(loss, scores), length / at_zero.shape[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class Belief:
    """A gradient given a noisy one, if the target is like the source and if it is not.

    Attributes
    ----------
    related, unrelated : arrays of shape (k, outputs)
        Posterior means about the public gradient and about 0.
    trust : float
        Posterior probability that the target is like the source; both are alike likely before.
    turn : array of shape (k, k)
        From gradients to Newton steps, in the coordinates that were asked in.
    """

    related: FloatArray
    unrelated: FloatArray
    trust: float
    turn: FloatArray

    @classmethod
    def of(
        cls,
        heard: FloatArray,
        public: FloatArray,
        curvatures: FloatArray,
        variance: FloatArray,
        most: float,
        *,
        turn: FloatArray,
    ) -> Belief:
        """Average over how far a gradient may lie from what was expected.

        Prior variances go with the curvatures; ``most`` caps the sum of prior variances over curvatures. A
        gradient at zero is a covariance with pulls of a known length ℓ, so that its sum of squares over
        curvatures is at most ℓ², and that of the difference of two unrelated ones at most 2ℓ².

        >>> public, flat = np.array([[1.0], [0.0]]), (np.ones(2), np.full(2, 0.01), 1.0)
        >>> [round(Belief.of(sign * public, public, *flat, turn=np.eye(2)).trust, 2) for sign in (1, -1)]
        [0.98, 0.04]
        """
        cases = []
        for about in (public, np.zeros_like(public)):
            evidence, means = [], []
            for share in SHARES:
                prior = (share * most / len(curvatures) * curvatures)[:, None]
                total, apart = prior + variance[:, None], heard - about
                evidence.append(-float((apart**2 / total + np.log(total)).sum()) / 2)
                means.append(about + prior / total * apart)
            cases.append((float(logsumexp(evidence)), np.tensordot(softmax(evidence), means, 1)))
        (first, related), (second, unrelated) = cases
        return cls(related=related, unrelated=unrelated, trust=float(expit(first - second)), turn=turn)

    @property
    def mean(self) -> FloatArray:
        """Over both cases."""
        return np.asarray(self.trust * self.related + (1 - self.trust) * self.unrelated)

    def step(self, gradient: FloatArray) -> FloatArray:
        """The Newton step from zero."""
        return np.asarray(-self.turn @ gradient)


__all__ = ["LOUD", "Belief", "OneGradient", "loudness"]
