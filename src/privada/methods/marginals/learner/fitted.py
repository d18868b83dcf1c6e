"""Results of learning: a model, and the public source with labels and weights as a synthetic target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Hypothesis, to_plain
from privada.methods.marginals.learner.classifiers import of_classifier
from privada.methods.marginals.learner.smoothing import Smoothed
from privada.privacy.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticTarget:
    """Public rows, weighted and labelled to stand for the private target.

    Attributes
    ----------
    X : array
        The public source's rows.
    probabilities : array of shape (rows, classes)
    weights : array
        Mean 1.
    guarantees : tuple of str
        The price of labels and weights, which are post-processing of these releases.
    """

    X: FloatArray
    probabilities: FloatArray
    weights: FloatArray
    guarantees: tuple[str, ...]

    def first(self, count: int) -> SyntheticTarget:
        """Its first rows alone, of mean weight 1."""
        if count == len(self.X):
            return self
        weights = self.weights[:count]
        return replace(
            self, X=self.X[:count], probabilities=self.probabilities[:count], weights=weights / weights.mean()
        )

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """Most likely class of each row."""
        return np.asarray(self.probabilities.argmax(axis=1), dtype=np.int64)

    @property
    def margins(self) -> FloatArray:
        """The difference of the two largest probabilities, times the weight."""
        ordered = np.sort(self.probabilities, axis=1)
        return (ordered[:, -1] - ordered[:, -2]) * self.weights

    def to_dict(self, classes: tuple[Any, ...]) -> dict[str, Any]:
        """Plain form: weight and probabilities of each public row, in order, without the rows themselves."""
        shares = self.probabilities.T.tolist()
        return {
            "guarantees": list(self.guarantees),
            "weights": self.weights.tolist(),
            "probabilities": {str(name): share for name, share in zip(classes, shares, strict=True)},
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalFit:
    """A classifier learnt through releases.

    Attributes
    ----------
    model : classifier
        Fitted on ``(X - mean) / scale`` with class codes as labels.
    synthetic : SyntheticTarget
    releases : tuple of Release
    smoothed : Smoothed or None
        The posterior, where a Gaussian process was used.
    hypotheses : tuple of Hypothesis
        Those that were submitted, one for each round.
    """

    model: Any
    mean: FloatArray
    scale: FloatArray
    synthetic: SyntheticTarget
    releases: tuple[Release, ...]
    smoothed: Smoothed | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    classes: tuple[Any, ...] = (0, 1)

    def codes(self, X: FloatArray) -> npt.NDArray[np.int64]:
        """Class code of each row."""
        return np.asarray(self.model.predict((X - self.mean) / self.scale), dtype=np.int64)

    def probabilities(self, X: FloatArray) -> FloatArray:
        """Class probabilities of each row, by the model."""
        shares = np.zeros((len(X), len(self.classes)))
        codes = np.asarray(self.model.classes_, dtype=np.int64)  # a model may not have met all classes
        shares[:, codes] = self.model.predict_proba((X - self.mean) / self.scale)
        return shares

    def hypothesis(self) -> Hypothesis:
        """The classifier in its wire form, on rows as they are; raises `InputError` if it has none."""
        return of_classifier(
            self.model,
            mean=self.mean,
            scale=self.scale,
            n_classes=len(self.classes),
            rows=self.synthetic.X,
        )

    def axes(self, schema: Any) -> dict[str, tuple[Any, ...]]:  # noqa: ARG002 - the classes are its own
        """Names along the lists of `to_dict`."""
        return {"class shares of the synthetic target": (tuple(map(str, self.classes)),)}

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports, with the synthetic target and the classifier's wire form.

        Weights and probabilities are in the order of the public rows. `from_plain` makes the hypothesis
        again, which labels rows by class code; where there is no wire form, the reason is given.
        """
        try:
            hypothesis = to_plain(self.hypothesis())
        except InputError as error:
            hypothesis = {"form": "none", "reason": str(error)}
        share = np.average(self.synthetic.probabilities, axis=0, weights=self.synthetic.weights)
        kernel = None
        if self.smoothed is not None:
            kernel = {"family": self.smoothed.family, "length": round(self.smoothed.length, 4)}
        return {
            "guarantees": [str(release.guarantee) for release in self.releases],
            "stamps": sorted({stamp for release in self.releases for stamp in release.stamps}),
            "rounds": len(self.releases),
            "classes": list(self.classes),
            "class shares of the synthetic target": [round(float(value), 4) for value in share],
            "kernel": kernel,
            "synthetic_target": self.synthetic.to_dict(self.classes),
            "hypothesis": hypothesis,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticNumbers:
    """Public rows, weighted and labelled with numbers to stand for the private target.

    Attributes
    ----------
    X : array
        The public source's rows.
    labels : array
        Within the label's public bounds.
    weights : array
        Mean 1.
    guarantees : tuple of str
        The price of labels and weights, which are post-processing of these releases.
    """

    X: FloatArray
    labels: FloatArray
    weights: FloatArray
    guarantees: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionFit:
    """A regressor learnt through releases.

    Attributes
    ----------
    model : regressor
        Fitted on ``(X - mean) / scale``.
    synthetic : SyntheticNumbers
    """

    model: Any
    mean: FloatArray
    scale: FloatArray
    synthetic: SyntheticNumbers
    releases: tuple[Release, ...]

    def predict(self, X: FloatArray) -> FloatArray:
        """Label of each row."""
        return np.asarray(self.model.predict((X - self.mean) / self.scale), dtype=np.float64)


__all__ = ["MarginalFit", "RegressionFit", "SyntheticNumbers", "SyntheticTarget"]
