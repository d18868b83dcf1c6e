"""A noisy descent of a linear score: one question and one charge for all steps.

**Scores.** Columns are standardised by public numbers and held to ``±limit``, and a public constant is put
before them. A public matrix P, if there is one, maps the result u to coordinates ``z = u P``. The score of a
record is ``o + z V``, where the offset o is a public affine function of what public models predict for the
record. V starts at 0. Numbers are learnt in a public unit, as ``y / unit``.

**Steps.** Step t releases the sum of ``z ⊗ ψ`` over the records, each shortened to norm B, plus Gaussian
noise (`losses` defines the pull ψ). With the released sum g, ``v <- βv - η (g / n + λ V)`` and
``V <- V + v``. λ draws V back to 0, which is the public model. n is an announced number: it scales the steps
and is not read from the rows.

Contributions are shortened, never the features inside the score. For a number this makes the loss of each
record a Huber loss with a threshold of its own, ``B / |z|``, so the descent fits the linear model that is
returned. Clipping z in the score would fit another, non-linear model.

**Proof.** What a record contributes is a function of that record, of public numbers and of V, which is made
of released sums. It is shortened to norm B, and is 0 if V makes it overflow. Truncation toward zero on the
grid shortens it further. So adding or removing a record moves a sum by at most B, replacing one moves it by
at most 2B, and a person's m records move it m times as far. Each of T sums gets Gaussian noise at ``μ/√T``.
Gaussian mechanisms compose exactly, and adaptively too: ``μ² = Σ μ_t²``. Everything made of the sums is
post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import losses, public
from privada.methods.linear.questions.features import PublicFeatures
from privada.privacy.codec import one_of
from privada.privacy.mechanism import Plan
from privada.privacy.relation import Relation
from privada.privacy.release import PACE, PublicSchema, Question


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LinearDescent(Question):
    """Ask for the noisy gradients of a linear score of numbers or classes.

    Every method that asks it registers a subclass with a ``kind`` of its own, so that an owner's policy and
    ledger tell the methods apart. Nothing else differs between the subclasses.

    Parameters
    ----------
    size : int
        Announced number of rows.
    loss : "squared", "logistic" or "softmax"
    outputs : int, default=1
        Scores of a record: the number of classes for "softmax", otherwise 1.
    centre, spread : arrays of shape (features,)
        A column becomes ``(x - centre) / spread``.
    limit : float
        Standardised columns are held to ``±limit``.
    constant : float
        The constant that stands before the columns.
    transform : array of shape (features + 1, k), optional
        P. By default z is the constant and the standardised columns.
    models : PublicFeatures, optional
        Public models whose predictions, or log-odds, make the offset.
    model_weights : array of shape (predictions, outputs), optional
        How much each prediction of the models counts. Given if and only if ``models`` is.
    intercepts : array of shape (outputs,), optional
        Constant part of the offset; by default 0.
    unit : float, default=1.0
        Numeric labels are learnt as ``y / unit``.
    threshold : float, optional
        κ₁, a loss beyond which records of a class pull less (`losses`). By default none is reduced.
    bound : float
        B, the norm to which the contribution of a record is shortened.
    steps, step_size : int and float
    momentum : float, default=0.0
    decay : float, default=0.0
        λ, the strength with which V is drawn back to 0.

    Notes
    -----
    The payload is ``gradient_0`` ...: noisy sums of shape (k, outputs), of which
    `privada.methods.linear.learner` makes weights.

    Privacy
    -------
    Unit and relation are the guarantee's. L2 sensitivity of each sum: B (add/remove) or 2B (replace-one),
    times the rows of a person. Proof: in the module and in privacy.md, section 6.3.

    >>> from privada.privacy import ApproxDP
    >>> class Toy(LinearDescent):
    ...     kind = "toy.linear"
    >>> question = Toy(loss="softmax", outputs=2, centre=np.zeros(2), spread=np.ones(2), limit=3.0,
    ...     constant=0.3, bound=0.5, size=100, steps=4, step_size=1.0,
    ...     guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
    >>> f"{question.plan.draws['gradient_0'].scale:.4f}"     # 0.5 times 3.7306 times √4
    '3.7306'
    """

    size: int
    loss: str
    outputs: int = 1
    centre: FloatArray
    spread: FloatArray
    limit: float
    constant: float
    transform: FloatArray | None = None
    models: PublicFeatures | None = field(default=None, metadata=one_of(PublicFeatures))
    model_weights: FloatArray | None = None
    intercepts: FloatArray | None = None
    unit: float = 1.0
    threshold: float | None = None
    bound: float
    steps: int
    step_size: float
    momentum: float = 0.0
    decay: float = 0.0
    answered_by: ClassVar[str] = "privada.methods.linear.owner:answer_descent"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.gaussian(self.guarantee, "A descent")
        centre = public.vector(centre=self.centre)
        arrays = {"centre": centre, "spread": public.vector(spread=self.spread, length=len(centre))}
        if not (arrays["spread"] > 0).all():
            raise InputError("Expected spread to be positive.")
        if self.transform is not None:
            arrays["transform"] = public.matrix(transform=self.transform)
            if len(arrays["transform"]) != len(centre) + 1:
                raise InputError(
                    f"Expected transform of {len(centre) + 1} rows, one for the constant and one for each "
                    f"feature, got {len(arrays['transform'])}."
                )
        if self.intercepts is not None:
            arrays["intercepts"] = public.vector(intercepts=self.intercepts, length=self.outputs)
        if self.model_weights is not None:
            arrays["model_weights"] = public.matrix(model_weights=self.model_weights, width=self.outputs)
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        self._validate_models()
        self._validate_numbers()

    def _validate_models(self) -> None:
        if (self.models is None) != (self.model_weights is None):
            raise InputError("Expected both models and model_weights, or neither.")
        if self.models is None or self.model_weights is None:
            return
        if not isinstance(self.models, PublicFeatures):
            raise InputError(f"Expected models to be PublicFeatures, got {type(self.models).__name__}.")
        if self.models.columns != len(self.centre):
            raise InputError(f"Expected models of {len(self.centre)} features, got {self.models.columns}.")
        if len(self.model_weights) != self.models.predicted:
            raise InputError(
                f"Expected model_weights of {self.models.predicted} rows, got {len(self.model_weights)}."
            )

    def _validate_numbers(self) -> None:
        _check.one_of(losses.LOSSES, loss=self.loss)
        if _check.count(outputs=self.outputs) != 1 and self.loss != "softmax":
            raise InputError(f"Expected one output for {self.loss} loss, got outputs={self.outputs}.")
        if self.outputs == 1 and self.loss == "softmax":
            raise InputError("Expected outputs of at least 2 for softmax loss, got 1.")
        for name in ("limit", "bound", "step_size", "unit"):
            _check.positive(**{name: getattr(self, name)})
        for name in ("constant", "decay"):
            _check.non_negative(**{name: getattr(self, name)})
        threshold = None if self.threshold is None else _check.positive(threshold=self.threshold)
        if threshold is not None and self.loss == "squared":
            raise InputError("Expected no threshold for squared loss: the bound clips its residuals.")
        if not 0 <= _check.share(momentum=self.momentum) < 1:
            raise InputError(f"Expected momentum below 1, got {self.momentum!r}.")
        _check.count(size=self.size)
        if _check.count(steps=self.steps) > public.MOST_STEPS:
            raise InputError(f"Expected steps of at most {public.MOST_STEPS:,}, got {self.steps:,}.")
        public.few_numbers(self.steps * self.coordinates * self.outputs, "all gradients")

    def fits(self, schema: PublicSchema) -> None:
        """Check features, label and, where the number of rows is public, size against the owner's schema."""
        if len(self.centre) != schema.width:
            raise InputError(
                f"Expected {schema.width} features as the owner's schema has, got {len(self.centre)}."
            )
        if self.guarantee.relation is not Relation.ADD_REMOVE and schema.size not in (None, self.size):
            raise InputError(
                f"Expected size to be the {schema.size} rows that the owner declared, got {self.size}."
            )
        if self.loss == "squared":
            public.numeric_label(schema)
        elif losses.outputs(self.loss, len(schema.classes)) != self.outputs:
            raise InputError(f"Expected outputs for {len(schema.classes)} classes, got {self.outputs}.")

    def seconds(self, schema: PublicSchema, *, rows: int) -> float:
        """Each row meets every public number once, and all weights twice in every step."""
        numbers = sum(array.size for array in self.parts()[1].values())
        return rows * (schema.width + numbers + 2 * self.steps * self.coordinates * self.outputs) / PACE

    @property
    def kept_bytes(self) -> int:
        """Prepared rows: single precision with offset, label and cap, or double precision for softmax."""
        if self.loss == "softmax":
            return 8 * self.size * (self.coordinates + self.outputs + 1)
        return self.size * (4 * self.coordinates + 24)

    @property
    def coordinates(self) -> int:
        """Number k of coordinates of a record."""
        return len(self.centre) + 1 if self.transform is None else int(self.transform.shape[1])

    @property
    def reach(self) -> float:
        """How far one unit moves a sum."""
        return self.bound * public.rows_moved(self.guarantee)

    def columns(self, X: FloatArray) -> FloatArray:
        """The constant and the standardised columns of every row, each number computed by itself."""
        with np.errstate(all="ignore"):  # what overflows is held to the limit, or is 0
            standard = np.nan_to_num((X - self.centre) / self.spread)
        inside = np.clip(standard, -self.limit, self.limit)
        return np.column_stack([np.full(len(X), float(self.constant)), inside])

    def column_weights(self, V: FloatArray) -> FloatArray:
        """Weights of the constant and of every standardised column that a point V stands for."""
        return V if self.transform is None else self.transform @ V

    def names(self) -> tuple[str, ...]:
        """Names of the draws, in order."""
        return tuple(f"gradient_{t}" for t in range(self.steps))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return dict.fromkeys(self.names(), (self.coordinates, self.outputs))

    def planned(self) -> Plan:
        """T Gaussian sums of equal noise; together they use up the guarantee."""
        return public.equal_sums(self.names(), reach=self.reach, guarantee=self.guarantee)

    def start(self) -> tuple[FloatArray, FloatArray]:
        """The first point and velocity: zeros."""
        shape = (self.coordinates, self.outputs)
        return np.zeros(shape), np.zeros(shape)

    def go_on(
        self, V: FloatArray, velocity: FloatArray, gradient: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """One step, from a released sum: the same on both sides."""
        slope = gradient / self.size + self.decay * V
        velocity = self.momentum * velocity - self.step_size * slope
        return V + velocity, velocity


class MarginalsDescent(LinearDescent):
    """Ask for a `LinearDescent` as marginals does.

    Privacy
    -------
    That of `LinearDescent`.
    """

    kind: ClassVar[str] = "marginals.linear"


class ReweightingDescent(LinearDescent):
    """Ask for a `LinearDescent` as reweighting does.

    Privacy
    -------
    That of `LinearDescent`.
    """

    kind: ClassVar[str] = "reweighting.linear"


class TransportDescent(LinearDescent):
    """Ask for a `LinearDescent` as transport does.

    Privacy
    -------
    That of `LinearDescent`.
    """

    kind: ClassVar[str] = "transport.linear"


__all__ = ["LinearDescent", "MarginalsDescent", "ReweightingDescent", "TransportDescent"]
