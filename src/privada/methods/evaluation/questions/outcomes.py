"""Counts of what a classifier does, by true class, prediction and score: what is asked, and what it costs.

*Proof.* A record has one true class, one prediction and one score, each a function of that record alone, so
it adds 1 to one entry of the table. One record more or less moves the table by 1 in L1 and L2; another
record in its place by 2 in L1 and √2 in L2; a unit of at most m records by m times that. Entries are whole
numbers and get discrete Laplace noise for a pure guarantee, discrete Gaussian noise for any other. Accuracy,
confusion matrix, ROC and calibration curve are computed from the noisy table and cost nothing more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Hypothesis
from privada.privacy.codec import one_of
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Plan
from privada.privacy.relation import Relation
from privada.privacy.release import PACE, Question

LARGEST = 10_000_000  # entries of a table
MOST_EDGES = 10_000
LINKS = ("none", "softmax")


def even_edges(bins: int, *, threshold: float = 0.5) -> FloatArray:
    """Inner ends of even bins between 0 and 1, and the threshold of two classes.

    >>> even_edges(4).tolist()
    [0.25, 0.5, 0.75]
    """
    if _check.count(bins=bins) > MOST_EDGES:  # said before a list of that length is made
        raise InputError(f"Expected bins to be at most {MOST_EDGES}, got {bins}.")
    inner = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    return np.unique(np.append(inner, _check.finite(threshold=threshold)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutcomeCounts(Question):
    """Ask how often a classifier says what of which class, and with which score.

    Parameters
    ----------
    hypothesis : Hypothesis
        The classifier.
    n_classes : int
        The number of the schema's classes.
    edges : array of float, default=()
        Public ends of the bins of scores, increasing; a score at an end is in the upper bin. Without any,
        scores are not counted. Of two classes the score is that of the second, and `threshold` must be one
        of the edges.
    link : {"none", "softmax"}, default="none"
        How scores become what is compared with the edges: as they are, or as probabilities.
    threshold : float, default=0.5
        Of two classes, the second is predicted from this score on.
    positive : int, optional
        Of more than two classes, the class whose score is binned; by default that of the predicted one.

    Privacy
    -------
    Unit and relation are the guarantee's. Sensitivity 1 (add/remove), 2 in L1 or √2 in L2
    (replace-one), times the rows of a person. Proof: above and privacy.md, section 6.8.

    Examples
    --------
    >>> from privada.methods.hypotheses import linear
    >>> from privada.privacy import PureDP
    >>> question = OutcomeCounts(hypothesis=linear([[1.0]], [0.0]), n_classes=2, edges=even_edges(4),
    ...                          link="softmax", guarantee=PureDP(epsilon=0.5, relation="add/remove"))
    >>> question.shape, question.plan.draws["table"].scale
    ((2, 1, 4), 2.0)
    """

    hypothesis: Hypothesis = field(metadata=one_of(Hypothesis, path="h/"))
    n_classes: int
    edges: FloatArray = field(default_factory=lambda: np.zeros(0))
    link: str = "none"
    threshold: float = 0.5
    positive: int | None = None
    kind: ClassVar[str] = "evaluation.outcomes"
    answered_by: ClassVar[str] = "privada.methods.evaluation.owner.answer:answer_outcomes"

    def validate(self) -> None:
        """Check every public parameter by name."""
        if not isinstance(self.hypothesis, Hypothesis):
            raise InputError(f"Expected hypothesis to be a Hypothesis, got {type(self.hypothesis).__name__}.")
        _check.count(least=2, n_classes=self.n_classes)
        _check.one_of(LINKS, link=self.link)
        _check.finite(threshold=self.threshold)
        object.__setattr__(self, "edges", _check_edges(self.edges))
        if len(self.edges) and not self.scored:
            raise InputError("Expected a hypothesis with scores beside edges; this one has codes only.")
        if len(self.edges) and self.n_classes == 2 and self.threshold not in self.edges:
            raise InputError(f"Expected threshold to be one of the edges, got {self.threshold!r}.")
        self._check_positive()
        if math.prod(self.shape) > LARGEST:
            raise InputError(f"Expected a table of at most {LARGEST} entries, got {math.prod(self.shape)}.")

    def _check_positive(self) -> None:
        if self.positive is None:
            return
        if _check.count(least=0, positive=self.positive) >= self.n_classes:
            raise InputError(f"Expected positive below {self.n_classes}, got {self.positive}.")
        if self.n_classes == 2 and self.positive != 1:
            raise InputError("Expected positive to be 1, the second of two classes, whose score is binned.")

    @property
    def scored(self) -> bool:
        """Whether predictions are made of scores."""
        return self.hypothesis.outputs > 0

    @property
    def shape(self) -> tuple[int, int, int]:
        """True classes, predictions and bins; of two classes, the bin says what is predicted."""
        predictions = 1 if self.n_classes == 2 and len(self.edges) else self.n_classes
        return self.n_classes, predictions, len(self.edges) + 1

    def fits(self, schema: Any) -> None:
        """Check classes and hypothesis against the owner's schema, before anything is charged."""
        if self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")
        if not self.scored:
            self.hypothesis.fits(schema.width, self.n_classes)
            return
        allowed = {self.n_classes} | ({1} if self.n_classes == 2 else set())
        if self.hypothesis.outputs not in allowed:
            raise InputError(
                f"Expected a hypothesis of {self.n_classes} scores, got one of {self.hypothesis.outputs}."
            )
        self.hypothesis.fits_scores(schema.width, self.hypothesis.outputs)

    def seconds(self, schema: Any, *, rows: int) -> float:
        """Each row goes through the hypothesis, and its score finds its bin."""
        width = int(schema.width)
        return rows * ((width + len(self.edges)) / PACE + self.hypothesis.seconds(width))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"table": self.shape}

    def planned(self) -> Plan:
        """One draw of the whole table."""
        rows, replaced = self.guarantee.unit.max_rows, self.guarantee.relation is not Relation.ADD_REMOVE
        if isinstance(self.guarantee, PureDP):
            reach = rows * (2.0 if replaced else 1.0)
            laplace = Laplace.calibrated(sensitivity=reach, epsilon=self.guarantee.epsilon)
            return Plan(draws={"table": laplace})
        reach = rows * (math.sqrt(2) if replaced else 1.0)
        gaussian = Gaussian.calibrated(sensitivity=reach, mu=self.guarantee.gaussian_mu(), whole=True)
        return Plan(draws={"table": gaussian})


def _check_edges(given: npt.ArrayLike) -> FloatArray:
    edges = np.asarray(given, dtype=np.float64)
    if edges.ndim != 1 or len(edges) > MOST_EDGES or not np.isfinite(edges).all():
        raise InputError(f"Expected edges to be a list of at most {MOST_EDGES} finite numbers.")
    if np.any(np.diff(edges) <= 0):
        raise InputError("Expected edges to be increasing.")
    return edges


__all__ = ["OutcomeCounts", "even_edges"]
