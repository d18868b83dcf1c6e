"""The default: a ladder from the cheapest correction to the richest, each step as far as evidence carries.

1. *Public models*, free of charge (`public_models`); their mean is where the ladder starts.
2. *A mixture*: one release of a handful of numbers (`MixtureMoments`) says how to shift, stretch and mix the
   public models (`evidence`).
3. *A correction* along the features, where the private rows are enough for it: a noisy descent for numbers
   (`LinearDescent`), shrunk by its known noise; one release of moments for classes (`CorrectionMoments`).

The result is linear in the standardised columns and the public predictions. All constants are fixed; nothing
is tuned on the rows at hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.forecast import Forecast
from privada.methods.linear.learner import fit_linear
from privada.methods.linear.questions import public
from privada.methods.linear.questions.descent import ReweightingDescent
from privada.methods.linear.questions.features import PublicFeatures
from privada.methods.reweighting.learner import evidence
from privada.methods.reweighting.learner.evidence import Block
from privada.methods.reweighting.learner.forecasting import forecast
from privada.methods.reweighting.learner.public_models import BASES, PublicSource, fit_source
from privada.methods.reweighting.questions.moments import CorrectionMoments, MixtureMoments
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

MIXTURE_SHARE = 0.25  # of μ²; all of it where no correction follows
CLIPPED = 3.0  # public residuals, to which residuals of numbers are clipped
WIDENED = 1.5  # times the public rows' root mean squared length, to which directions and features are clipped
FEWEST_DIRECTIONS = {"identity": 4, "probability": 2}  # a correction along fewer is not worth its price
MOST_DIRECTIONS = 60
PAID_DIRECTIONS = 0.21  # k = this times (n μ)^(2/3): beyond, the noise of k² moments drowns k of them
SHIFTS, MIXES, SPREADS = (0.02, 0.1, 0.3, 1.0), (0.1, 0.25, 0.5), (0.02, 0.1, 0.3)  # sizes of corrections
LEVELS = (0.02, 0.1, 0.3)  # of the constant, after the mixture; in residuals, as the next
SLOPES = (0.003, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
WIDER, SMALLEST = 2.0, 0.25  # units of differences: of numbers, times the public one; of probabilities
FLAT = 1e-2  # of the largest variance, added to all in the coordinates of a correction of classes
DESCENT_FLAT = {"auto": 3e-3, "linear": 1e-4}  # the same of a descent
DESCENT: dict[str, dict[str, Any]] = {  # a share of 0.1 or 0.03 of each step of 0.1 draws back to the mixture
    "auto": {"decay": 0.1 / 0.9, "steps": 60, "step_size": 0.1 * 0.9},
    "linear": {"decay": 0.03 / 0.97, "steps": 100, "step_size": 0.1 * 0.97},
}
THRESHOLD = 0.5  # residuals, times √μ up to 1: the less noise, the less is clipped
INSIDE, FURTHEST_DIRECTIONS = 0.9, 256  # share of public rows that the descent's ball holds; most directions


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptedModel:
    """A model of a private target: linear in public features.

    Attributes
    ----------
    features : PublicFeatures
        Standardised columns and public predictions of a row.
    coef, intercept : arrays of shape (features.width, outputs) and (outputs,)
    guarantee : Guarantee
        Of all releases together.
    releases : tuple of Release
    """

    features: PublicFeatures = field(repr=False)
    coef: FloatArray
    intercept: FloatArray
    guarantee: Guarantee
    releases: tuple[Release, ...] = field(repr=False)

    def scores(self, X: FloatArray) -> FloatArray:
        """Predicted numbers, or class probabilities that are not yet held to 0 and 1, of public rows."""
        return np.asarray(self.features.extend(X) @ self.coef + self.intercept)

    def probabilities(self, X: FloatArray) -> FloatArray:
        """Class probabilities of public rows."""
        scores = np.clip(self.scores(X), 0.0, 1.0)
        if scores.shape[1] == 1:
            return np.hstack([1 - scores, scores])
        total = scores.sum(axis=1, keepdims=True)
        return np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1 / scores.shape[1])

    def linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        """Weights and intercepts in the features' own units, if the model is linear in them."""
        features = self.features
        if features.models > 1 or features.link != "identity" or features.limit < public.LARGEST:
            return None
        own, of_model = self.coef[: features.columns], self.coef[features.columns :]
        weights = own / features.spread[:, None] + features.weights @ of_model
        level = self.intercept - (features.mean / features.spread) @ own + features.starts @ of_model
        return weights, level

    def axes(self, schema: Any) -> dict[str, tuple[Any, ...]]:
        """Names along the lists of `to_dict`: features, then public models; and classes, or the label."""
        inputs = (*schema.features, *(f"public model {i + 1}" for i in range(self.features.models)))
        # the label for one number; of one score of two classes, the second; else the classes
        values = getattr(schema.label, "values", None) or (schema.label.name,)
        outputs = tuple(str(value) for value in values[-self.coef.shape[1] :])
        return {"coef": (inputs, outputs), "intercept": (outputs,)}

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.guarantee),
            "stamps": sorted({stamp for release in self.releases for stamp in release.stamps}),
            "models": self.features.models,
            "questions": [release.kind for release in self.releases],
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Mixed:
    """A model so far, and the mean squared residual that it is expected to have."""

    weights: FloatArray
    intercepts: FloatArray
    squared: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Ladder:
    """All that is public of an adaptation.

    Attributes
    ----------
    size : int
        Public number of private rows.
    guarantee : Guarantee
    source : PublicSource
    forecast : Forecast
        What is expected, before anything is spent.
    most_apart : float
        Largest possible residual of a number.
    base : "auto" or "linear"
    """

    size: int
    guarantee: Guarantee
    source: PublicSource
    forecast: Forecast
    most_apart: float
    base: str = "auto"
    salt: str = ""

    @property
    def features(self) -> PublicFeatures:
        """Public features."""
        return self.source.features

    @cached_property
    def mean(self) -> FloatArray:
        """The public models' mean, of held-out rows."""
        return np.asarray(self.source.predictions.mean(axis=1))

    @cached_property
    def affine_rows(self) -> FloatArray:
        """Predictions of held-out rows, and a 1."""
        rows = self.source.rows
        return np.column_stack([rows[:, self.features.columns :], np.ones(len(rows))])

    @cached_property
    def residual(self) -> float:
        """Its root mean squared residual there; a source without noise says nothing of the target's."""
        labels = self.source.labels
        least = max(1e-2 * _length(labels - labels.mean(axis=0)), 1e-6 * float(np.abs(labels).max()), 1e-9)
        return max(_length(labels - self.mean), least)

    @property
    def clip(self) -> float:
        """c: no two class indicators are further apart than this; numbers are clipped."""
        if self.features.link == "identity":
            return min(CLIPPED * self.residual, self.most_apart)
        return 1.0 if self.features.outputs == 1 else math.sqrt(2)

    @cached_property
    def directions(self) -> int:
        """Directions along which a correction pays; 0 if none follows."""
        enough = PAID_DIRECTIONS * (self.size * self.guarantee.gaussian_mu()) ** (2 / 3)
        count = int(min(enough, self.features.columns, MOST_DIRECTIONS))
        few = min(FEWEST_DIRECTIONS[self.features.link], self.features.columns)
        return count if count >= few else 0

    def shares(self) -> tuple[Guarantee, Guarantee | None]:
        """What mixture and correction may cost."""
        if not self.directions:
            return self.guarantee, None
        first, rest = public.shares(self.guarantee, MIXTURE_SHARE)
        assert first is not None
        return first, rest

    def start(self) -> Mixed:
        """The public models' mean."""
        features, share = self.features, 1 / self.features.models
        weights = np.zeros((features.width, features.outputs))
        weights[features.columns :] = np.tile(share * np.eye(features.outputs), (features.models, 1))
        return Mixed(weights, np.zeros(features.outputs), self.residual**2)

    def mixture(self) -> MixtureMoments:
        """Ask how to shift, mix and stretch the public models."""
        start, directions = self.start(), np.concatenate([part for part, _ in self._directions()])
        lengths = np.sqrt(
            (np.einsum("nj,kjo->nko", self.affine_rows, directions) ** 2).sum(axis=(1, 2)).mean()
        )
        return MixtureMoments(
            size=self.size,
            features=self.features,
            weights=start.weights,
            intercepts=start.intercepts,
            directions=directions,
            radius=WIDENED * float(lengths),
            clip=self.clip,
            guarantee=self.shares()[0],
            salt=self.salt,
        )

    def _directions(self) -> Iterator[tuple[FloatArray, Block]]:
        """Affine functions of all predictions, and how large their coefficients may be."""
        J, O = self.features.models, self.features.outputs  # noqa: E741 - outputs
        unit = self.residual / math.sqrt(O)
        constant = np.zeros((O, J * O + 1, O))
        constant[np.arange(O), -1, np.arange(O)] = 1.0
        yield constant, Block(O, [unit * size for size in SHIFTS])
        if J > 1:
            # Units of the differences of each model from the mean: of probabilities they are known.
            units = np.full(J, SMALLEST)
            if self.features.link != "probability":
                differences = self.source.predictions - self.mean[:, None, :]
                units = WIDER * np.sqrt((differences**2).sum(axis=2).mean(axis=0))
                units = np.maximum(units, 0.1 * self.residual)
            apart = np.zeros((J, J * O + 1, O))
            for j in range(J):
                shares = np.full(J, -1 / J) + (np.arange(J) == j)
                apart[j, :-1] = np.kron(shares[:, None], np.eye(O)) / (units[j] * math.sqrt(J))
            yield apart, Block(J, [units.mean() * math.sqrt(J) * size for size in MIXES])
        middle = self.mean.mean(axis=0)
        spread = max(_length(self.mean - middle), 1e-3 * self.residual)
        stretch = np.zeros((1, J * O + 1, O))
        stretch[0, :-1] = np.tile(np.eye(O) / J, (J, 1)) / spread
        stretch[0, -1] = -middle / spread
        yield stretch, Block(1, [spread * size for size in SPREADS])

    def mixed(self, question: MixtureMoments, release: Release) -> Mixed:
        """The mixture that the release speaks for."""
        Phi = np.einsum("nj,kjo->nko", self.affine_rows, question.directions)
        Phi *= np.minimum(1, question.radius / np.sqrt((Phi**2).sum(axis=(1, 2), keepdims=True)))
        expected = np.einsum("nko,nlo->kl", Phi, Phi) * self.size / len(Phi)
        b, squared = np.asarray(release["products"]), float(release["squares"][0]) / self.size
        w = self._estimate(question, release, expected, [block for _, block in self._directions()], squared)
        moved = np.tensordot(w[:, 0], question.directions, 1)
        weights = question.weights.copy()
        weights[self.features.columns :] += moved[:-1]
        after = squared - float(w[:, 0] @ b) / self.size
        return Mixed(weights, question.intercepts + moved[-1], after)

    def _estimate(
        self,
        question: MixtureMoments | CorrectionMoments,
        release: Release,
        expected: FloatArray,
        blocks: list[Block],
        squared: float,
    ) -> FloatArray:
        """Coefficients by evidence; ``expected`` are the public moments."""
        k, noise = question.directions_count, question.noise("moments")
        noisy = evidence.symmetric(np.asarray(release["moments"]), k)
        A, share = evidence.approach(noisy, expected, noise)
        return evidence.estimate(
            A,
            np.asarray(release["products"]).reshape(k, -1),
            blocks,
            residual=self._bound_square(squared, 0.5) / self.features.outputs,
            noise_moments=share * noise,
            noise_products=question.noise("products"),
        )

    def _bound_square(self, squared: float, least: float) -> float:
        """A noisy mean squared residual within what is possible."""
        return float(np.clip(squared, least * self.residual**2, max(self.clip, self.residual) ** 2))

    def second(self, so_far: Mixed, guarantee: Guarantee) -> ReweightingDescent | CorrectionMoments:
        """The question about the rest."""
        if self.features.link == "identity":
            return self.descent(so_far, guarantee)
        return self.correction(so_far, guarantee)

    def descent(self, so_far: Mixed, guarantee: Guarantee) -> ReweightingDescent:
        """Ask for a noisy descent from the mixture, along all columns."""
        features = self.features
        rows = np.column_stack([self.source.columns, np.ones(len(self.source.columns))])
        eigen, vectors = _spectrum(rows)
        keep = eigen > 1e-10 * eigen[0]
        keep[FURTHEST_DIRECTIONS:] = False
        flat = DESCENT_FLAT[self.base] * eigen[0]
        P = vectors[:, keep] / np.sqrt(eigen[keep] + flat)
        radius = float(np.quantile(np.linalg.norm(rows @ P, axis=1), INSIDE))
        loud = min(1.0, self.guarantee.gaussian_mu())
        return ReweightingDescent(
            size=self.size,
            loss="squared",
            centre=features.mean,
            spread=features.spread,
            limit=features.limit,
            constant=1.0,
            transform=np.vstack([P[-1], P[:-1]]),
            models=features,
            model_weights=so_far.weights[features.columns :],
            intercepts=so_far.intercepts,
            bound=THRESHOLD * math.sqrt(loud * self._bound_square(so_far.squared, 0.1)) * radius,
            guarantee=guarantee,
            salt=self.salt,
            **DESCENT[self.base],
        )

    def correction(self, so_far: Mixed, guarantee: Guarantee) -> CorrectionMoments:
        """Ask for moments of the mixture's residuals along the strongest directions of the columns."""
        columns, k = self.features.columns, self.directions
        rows = self.source.columns
        centre = rows.mean(axis=0)
        eigen, vectors = _spectrum(rows - centre)
        P = vectors[:, :k] / np.sqrt(eigen[:k] + FLAT * max(eigen[0], 1e-12))
        P /= max(_length((rows - centre) @ P), 1e-12)
        transform = np.zeros((self.features.width, k + 1))
        transform[:columns, 1:] = P
        return CorrectionMoments(
            size=self.size,
            features=self.features,
            weights=so_far.weights,
            intercepts=so_far.intercepts,
            transform=transform,
            shift=np.append(1.0, -centre @ P),
            radius=WIDENED,
            clip=self.clip,
            guarantee=guarantee,
            salt=self.salt,
        )

    def corrected(
        self, question: ReweightingDescent | CorrectionMoments, release: Release, so_far: Mixed
    ) -> Mixed:
        """The model that the second release speaks for."""
        if isinstance(question, ReweightingDescent):
            # residuals beyond the bound draw no noise back: as many as those of a normal law
            inside = THRESHOLD * math.sqrt(min(1.0, self.guarantee.gaussian_mu()) / 2)
            V = fit_linear(question, release, pull=math.erf(inside))
            moved = question.column_weights(V)
            weights = so_far.weights.copy()
            weights[: self.features.columns] += moved[1:]
            return Mixed(weights, so_far.intercepts + moved[0], so_far.squared)
        Z = self.source.rows @ question.transform + question.shift
        Z *= np.minimum(1, question.radius / np.linalg.norm(Z, axis=1, keepdims=True))
        unit = self.residual / math.sqrt(self.features.outputs)
        blocks = [
            Block(1, [unit * size for size in LEVELS]),
            Block(Z.shape[1] - 1, [unit * size for size in SLOPES]),
        ]
        V = self._estimate(question, release, Z.T @ Z * self.size / len(Z), blocks, so_far.squared)
        weights = so_far.weights + question.transform @ V
        return Mixed(weights, so_far.intercepts + question.shift @ V, so_far.squared)

    def inquiry(self, owner: str) -> Inquiry[AdaptedModel]:
        """Ask for the mixture and, where the private rows are enough for it, for a correction."""
        first, rest = self.mixture(), self.shares()[1]
        asks = [AskOwner(owner, first)]
        if rest is not None:
            # What the second question costs does not depend on the first answer, which it starts from.
            asks.append(AskOwner(owner, self.second(self.start(), rest)))

        def learn() -> Learner[AdaptedModel]:
            releases = [(yield AskOwner(owner, first))]
            only_releases(releases[0])
            model = self.mixed(first, releases[0])
            if rest is not None:
                question = self.second(model, rest)
                releases.append((yield AskOwner(owner, question)))
                only_releases(releases[1])
                model = self.corrected(question, releases[1], model)
            return AdaptedModel(
                features=self.features,
                coef=model.weights,
                intercept=model.intercepts,
                guarantee=self.guarantee,
                releases=tuple(releases),
            )

        return Inquiry(tuple(asks), learn, forecast=self.forecast)


def plan(
    Xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    *,
    size: int,
    guarantee: Guarantee,
    n_classes: int = 0,
    label_bounds: tuple[float, float] | None = None,
    base: str = "auto",
    standardize: bool = True,
    random_state: int | None = None,
    salt: str = "",
) -> Ladder:
    """Fit the public models and say what to expect; nothing is asked yet.

    Parameters
    ----------
    Xs, ys : arrays
        Public source; class labels as codes.
    size : int
        Public number of private rows.
    guarantee : Guarantee
        Of all questions together.
    n_classes : int, default=0
        Number of public classes; 0 for numbers.
    label_bounds : (low, high), optional
        Public limits of numbers.
    base : "auto" or "linear", default="auto"
        Which public models take part.
    standardize : bool, default=True
        Scale each feature by the source; False keeps their ratios.
    random_state : int, optional
        For public randomness only.
    salt : str, default=""
        Tells apart two askings of one question.
    """
    public.replaced(guarantee)
    public.gaussian(guarantee, "An adaptation")
    _check.one_of(BASES, base=base)
    X, y = _check.matrix(Xs=Xs), np.asarray(ys, dtype=np.float64)
    if y.shape != (len(X),) or not np.isfinite(y).all():
        raise InputError("Expected ys to be one finite label for each public row.")
    if len(X) < 2:
        raise InputError("Expected at least two public rows; without them train on the target alone.")
    if not n_classes and not y.any():
        raise InputError("Expected public labels other than 0: they give the scale of the private ones.")
    source = fit_source(
        X,
        y.astype(np.int64) if n_classes else y,
        n_classes=n_classes,
        limits=label_bounds,
        base=base,
        standardize=standardize,
        seed=0 if random_state is None else int(random_state),
    )
    apart = np.inf if label_bounds is None else float(label_bounds[1]) - float(label_bounds[0])
    expected = forecast(source, size=_check.count(size=size), mu=guarantee.gaussian_mu())
    return Ladder(
        size=size,
        guarantee=guarantee,
        source=source,
        forecast=expected,
        most_apart=apart,
        base=base,
        salt=salt,
    )


def _length(rows: FloatArray) -> float:
    """Root mean squared length of rows."""
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


def _spectrum(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, falling, and eigenvectors of the second moments."""
    eigen, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    return np.maximum(eigen[::-1], 0.0), vectors[:, ::-1]


__all__ = ["AdaptedModel", "Ladder", "plan"]
