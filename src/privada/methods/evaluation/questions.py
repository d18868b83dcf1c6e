"""The questions of an evaluation and their prices: outcomes of a classifier, squared errors of a regressor.

*Proof for outcomes.* A record has one true class, one prediction and one score, each a function of that
record alone, so it adds 1 to one entry of the table. One record more or less changes the table by 1 in L1
and L2; another record in its place by 2 in L1 and √2 in L2; a unit of at most m records by m times that.
Entries are whole numbers and get discrete Laplace noise for a pure guarantee, discrete Gaussian noise for
any other. Accuracy, confusion matrix, ROC and calibration curve are computed from the noisy table and cost
nothing more.

*Proof for errors.* A prediction is clipped to the label's public bounds and its squared error to the public
L; u is that error over L, between 0 and 1, truncated to a public grid, and a function of that record alone.
A record adds 1 to the number of rows, u to the sum of errors and the truncated u² to the sum of their
squares. Each of the three changes by at most 1 with one record more or less. Another record in its place
changes each of the last two by at most 1, since both values are between 0 and 1, and the number of rows,
which is public then, not at all: it is not asked for. A unit of at most m records changes each by m times as
much. The parts of the budget add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Hypothesis
from privada.methods.linear.questions import public
from privada.privacy.bounds import Grid
from privada.privacy.codec import one_of
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PACE, Question

LARGEST_TABLE = 10_000_000  # entries
MOST_EDGES = 10_000
LINKS = ("none", "softmax")
GRID = Grid(-20)  # of squared errors
SHARES = {"rows": 0.25, "errors": 0.5, "squares": 0.25}  # of the budget, or of its squared mu


def even_edges(bins: int, *, threshold: float = 0.5) -> FloatArray:
    """Inner ends of even bins between 0 and 1, and the threshold of two classes.

    >>> even_edges(4).tolist()
    [0.25, 0.5, 0.75]
    """
    # Checked before a list of that length is made.
    if _check.count(bins=bins) > MOST_EDGES:
        raise InputError(f"Expected bins to be at most {MOST_EDGES}, got {bins}.")
    inner = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    return np.unique(np.append(inner, _check.finite(threshold=threshold)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutcomeCounts(Question):
    """Ask how often a classifier predicts each class for records of each true class, and with which score.

    Parameters
    ----------
    hypothesis : Hypothesis
        The classifier.
    n_classes : int
        The number of the schema's classes.
    edges : array of float, default=()
        Public ends of the bins of scores, increasing; a score at an end is in the upper bin. Without edges,
        scores are not counted. For two classes the score is that of the second, and `threshold` must be one
        of the edges.
    link : {"none", "softmax"}, default="none"
        What is compared with the edges: scores as they are, or probabilities made from them.
    threshold : float, default=0.5
        For two classes, the score from which on the second class is predicted.
    positive : int, optional
        For more than two classes, the class whose score is binned; by default the predicted one.

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
    answered_by: ClassVar[str] = "privada.methods.evaluation.owner:answer_outcomes"

    def validate(self) -> None:
        """Check every public parameter by name."""
        if not isinstance(self.hypothesis, Hypothesis):
            raise InputError(f"Expected hypothesis to be a Hypothesis, got {type(self.hypothesis).__name__}.")
        _check.count(least=2, n_classes=self.n_classes)
        _check.one_of(LINKS, link=self.link)
        _check.finite(threshold=self.threshold)
        edges = np.asarray(self.edges, dtype=np.float64)
        if edges.ndim != 1 or len(edges) > MOST_EDGES or not np.isfinite(edges).all():
            raise InputError(f"Expected edges to be a list of at most {MOST_EDGES} finite numbers.")
        if np.any(np.diff(edges) <= 0):
            raise InputError("Expected edges to be increasing.")
        object.__setattr__(self, "edges", edges)
        if len(edges) and not self.scored:
            raise InputError("Expected a hypothesis with scores for edges; this one has codes only.")
        if len(edges) and self.n_classes == 2 and self.threshold not in edges:
            raise InputError(f"Expected threshold to be one of the edges, got {self.threshold!r}.")
        self._check_positive()
        if math.prod(self.shape) > LARGEST_TABLE:
            raise InputError(
                f"Expected a table of at most {LARGEST_TABLE} entries, got {math.prod(self.shape)}."
            )

    def _check_positive(self) -> None:
        if self.positive is None:
            return
        if _check.count(least=0, positive=self.positive) >= self.n_classes:
            raise InputError(f"Expected positive below {self.n_classes}, got {self.positive}.")
        if self.n_classes == 2 and self.positive != 1:
            raise InputError("Expected positive to be 1, the second of two classes, whose score is binned.")

    @property
    def scored(self) -> bool:
        """Whether predictions are made from scores."""
        return self.hypothesis.outputs > 0

    @property
    def shape(self) -> tuple[int, int, int]:
        """True classes, predictions and bins; for two classes, the bin tells the prediction."""
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ErrorMoments(Question):
    """Ask for a regressor's squared errors: their sum, and what is needed for its confidence interval.

    Parameters
    ----------
    hypothesis : Hypothesis
        With one score, in the label's units.
    largest : float
        Squared errors are clipped to this public bound.

    Privacy
    -------
    Unit and relation are the guarantee's. Each of the sums has sensitivity 1, times the rows of a person; the
    budget is divided among them. Proof: above and privacy.md, section 6.8.
    """

    hypothesis: Hypothesis = field(metadata=one_of(Hypothesis, path="h/"))
    largest: float
    kind: ClassVar[str] = "evaluation.errors"
    answered_by: ClassVar[str] = "privada.methods.evaluation.owner:answer_errors"

    def validate(self) -> None:
        """Check every public parameter by name."""
        hypothesis: object = self.hypothesis
        if not isinstance(hypothesis, Hypothesis) or hypothesis.outputs != 1:
            raise InputError("Expected hypothesis to be a Hypothesis with one score.")
        _check.positive(largest=self.largest)

    def fits(self, schema: Any) -> None:
        """Check label and hypothesis against the owner's schema, before anything is charged."""
        public.numeric_label(schema)
        self.hypothesis.fits_scores(schema.width, 1)

    def seconds(self, schema: Any, *, rows: int) -> float:
        """Each row goes through the hypothesis."""
        width = int(schema.width)
        return rows * (width / PACE + self.hypothesis.seconds(width))

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows is asked for: it is public where rows are replaced."""
        return self.guarantee.relation is Relation.ADD_REMOVE

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return dict.fromkeys(self.shares(), (1,))

    def shares(self) -> dict[str, float]:
        """The part of the budget of each draw."""
        shares = {name: share for name, share in SHARES.items() if self.counts_rows or name != "rows"}
        return {name: share / sum(shares.values()) for name, share in shares.items()}

    def planned(self) -> Plan:
        """One draw for each sum."""
        rows, draws = float(self.guarantee.unit.max_rows), dict[str, Mechanism]()
        if isinstance(self.guarantee, PureDP):
            for name, share in self.shares().items():
                epsilon = share * self.guarantee.epsilon
                draws[name] = Laplace.calibrated(sensitivity=rows, epsilon=epsilon, grid=GRID)
            return Plan(draws=draws)
        mu, joint = self.guarantee.gaussian_mu(), 0.0
        for name, share in self.shares().items():
            draw = Gaussian.calibrated(sensitivity=rows, mu=mu * math.sqrt(share), grid=GRID)
            draws[name], joint = draw, joint + draw.mu**2
        return Plan(draws=draws, event=gaussian_event(math.sqrt(joint)))


__all__ = ["GRID", "ErrorMoments", "OutcomeCounts", "even_edges"]
