"""PNCnvxAdap for any torch module: every record's gradient is clipped, then summed and noised.

**Objective.** J (equation 7) with weights of the private rows that never leave (privacy.md, section 4 (c),
hidden u) and their separable penalty, so that each is a function of its own record and of the path.

**Proof.** The start, the public rows and all settings are public. A record's gradient at the current point
is scaled to norm at most G (the ``clip``; a gradient that is not finite counts as zero), times its factor
``n/((1-α)u_i) <= 1``; truncation toward zero shortens it. It is a function of the record, of its own
factor, and of the path. So replacing a record moves a step's sum by at most ``2 G``, and replacing a
person's m records by m times that (if the person who takes their place has another number of records, rows
at the end of the public size may come or go, at most ``2 m`` contributions in all); G is enforced, nothing is
assumed of the module. T sums with Gaussian noise at ``μ/√T`` compose exactly, adaptively too. Which iterate
leaves, or their mean, is post-processing.

**Arithmetic.** Gradients are taken in double precision in blocks of one public shape, the last one filled
with zeros, and every row has its own copy of the parameters: each product has the shape of one row, and no
sum runs over rows, before the whole steps of the grid are summed as integers. Under replace-one all other
rows stay where they are, so their contributions stay the same to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.methods.reweighting.questions import network
from privada.methods.reweighting.questions.problem import Penalties
from privada.privacy.codec import mapping_of
from privada.privacy.mechanism import Plan
from privada.privacy.release import PublicSchema, Question

LOSSES = ("cross-entropy", "squared")
STOPPING = ("average", "random")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModuleAdaptation(Question):
    """Ask for a torch module, trained on public and private rows by noisy, clipped gradients.

    Parameters
    ----------
    size : int
        Public number n of private rows.
    network : dict
        ``{"layers": [...]}`` as `network.declare` gives it, or ``{"known": name}`` (`network.keep`).
    start : array of shape (parameters,)
        The public start, in the module's order of parameters.
    source, source_labels : arrays of shape (m, features) and (m,)
        The public rows; labels are numbers, or codes of classes.
    mean, scale : arrays of shape (features,)
        Public; the module sees ``(x - mean) / scale``.
    label_mean, label_scale : float
        The same for a numeric label.
    penalties : Penalties
        alpha, κ's (λ's of equation 7; κ_∞ is 0) and a *released* discrepancy.
    loss : "cross-entropy" or "squared"
    clip, largest_loss : float
        G and B: enforced, not assumed.
    A : float
        How far from the start the parameters may go.
    steps : int
    step_scale : float
        Factor on the paper's step size of the parameters (line 4).
    stopping : "random" or "average"
        What leaves: the iterate of a uniformly random step, as Algorithm 2 has it, or the mean of the
        later half. The charge is for all T steps in both cases.

    Notes
    -----
    The payload is ``weights``, the parameters in one vector.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivity of each sum ``2 G``, times the rows
    of a person. Proof: the module's docstring.
    """

    size: int
    network: dict[str, Any]
    start: FloatArray
    source: FloatArray
    source_labels: FloatArray
    mean: FloatArray
    scale: FloatArray
    penalties: Penalties = field(metadata=mapping_of(Penalties))
    clip: float
    A: float
    loss: str = "cross-entropy"
    largest_loss: float = 10.0
    steps: int = 100
    step_scale: float = 1.0
    stopping: str = "random"
    label_mean: float = 0.0
    label_scale: float = 1.0
    kind: ClassVar[str] = "reweighting.module"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_module"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.replaced(self.guarantee)
        public.gaussian(self.guarantee, "A private adaptation")
        _check.count(size=self.size)
        source = public.matrix(source=self.source)
        width = source.shape[1]
        arrays = {
            "source": source,
            "source_labels": public.vector(source_labels=self.source_labels, length=len(source)),
            "mean": public.vector(mean=self.mean, length=width),
            "scale": public.vector(scale=self.scale, length=width),
            "start": public.vector(start=self.start),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        if not (self.scale > 0).all():
            raise InputError("Expected scale > 0 for every feature.")
        self._validate_numbers()
        self._validate_network(width)

    def _validate_numbers(self) -> None:
        _check.one_of(LOSSES, loss=self.loss)
        _check.one_of(STOPPING, stopping=self.stopping)
        for name in ("clip", "largest_loss", "A", "step_scale", "label_scale"):
            _check.positive(**{name: getattr(self, name)})
        _check.finite(label_mean=self.label_mean)
        self.penalties.check_moderate()
        if self.penalties.kappa_inf:
            raise InputError("Expected kappa_inf to be 0: it couples the weights of the rows.")
        if _check.count(steps=self.steps) > public.MOST_STEPS:
            raise InputError(f"Expected steps of at most {public.MOST_STEPS:,}, got {self.steps:,}.")
        public.few_numbers(self.steps * len(self.start), "the noise on all gradients")
        public.few_numbers(self.size * self.source.shape[1], "the private rows")

    def _validate_network(self, width: int) -> None:
        module = network.resolve(self.network, width=width)
        parameters = len(network.flat(module))
        if parameters != len(self.start) or not parameters:
            raise InputError(f"Expected start to hold {parameters} parameters, got {len(self.start)}.")
        outputs = network.n_outputs(module, width=width)
        labels = self.source_labels
        if self.loss == "squared":
            if outputs != 1:
                raise InputError(f"Expected a module of one output for squared loss, got {outputs}.")
        elif outputs < 2 or not np.isin(labels, np.arange(outputs)).all():
            raise InputError(f"Expected source_labels to be codes of the module's {outputs} classes.")
        object.__setattr__(self, "_outputs", outputs)

    @property
    def outputs(self) -> int:
        """Number of the module's outputs."""
        return int(self._outputs)  # type: ignore[attr-defined]

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        public.declared(self.size, schema, self.source.shape[1])
        if self.loss == "squared":
            public.numeric_label(schema)
        elif len(schema.classes) != self.outputs:
            raise InputError(f"Expected {len(schema.classes)} outputs, one a class, got {self.outputs}.")

    @property
    def reach(self) -> float:
        """How far one step of the relation moves a sum: ``2 G`` for each row of a unit."""
        return 2 * self.clip * self.guarantee.unit.max_rows

    def names(self) -> tuple[str, ...]:
        """Names of the draws, in order."""
        return tuple(f"gradient_{t}" for t in range(self.steps))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"weights": (len(self.start),)}

    def planned(self) -> Plan:
        """T Gaussian sums of equal noise; together they use up the guarantee."""
        return public.equal_sums(self.names(), reach=self.reach, guarantee=self.guarantee)


__all__ = ["LOSSES", "STOPPING", "ModuleAdaptation"]
