"""The noisy descent of `privada.methods.linear`, as this room asks for it: on public features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.methods.linear.questions.descent import LinearDescent
from privada.methods.reweighting.questions.features import PublicFeatures, other_parts, own_parts
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import PublicSchema


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Descent(LinearDescent):
    """Ask for a noisy descent from a public warm start; parameters, payload and proof are `LinearDescent`'s.

    Parameters
    ----------
    features : PublicFeatures, optional
        What the descent sees of a row; by default the row as it is. It is a public function of that row
        alone, so nothing else changes.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivity of each sum ``2 c r``, times the
    rows of a person. Proof: `privada.methods.linear.questions.descent`.

    >>> import numpy as np
    >>> from privada.privacy import ApproxDP
    >>> guarantee = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")
    >>> question = Descent(size=100, weights=np.zeros((2, 1)), intercepts=[0.0], transform=np.eye(2),
    ...     shift=np.zeros(2), curvature=np.eye(2), radius=1.0, threshold=0.5, alpha=0.5, guarantee=guarantee)
    >>> f"{question.plan.draws['gradient_0'].scale / question.steps**0.5:.4f}"   # 2 c r times 3.7306
    '3.7306'
    """

    features: PublicFeatures | None = None
    kind: ClassVar[str] = "reweighting.descent"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.ladder:answer_descent"

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        if self.features is None:
            return
        if not isinstance(self.features, PublicFeatures):
            raise InputError(f"Expected features to be PublicFeatures, got {type(self.features).__name__}.")
        if self.loss != "squared" or self.features.width != len(self.weights):
            raise InputError(
                f"Expected squared loss, and weights of {self.features.width} rows for features."
            )

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        if self.features is None:
            super().fits(schema)
        else:
            public.declared(self.size, schema, self.features.columns)
            public.numeric_label(schema)

    def parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Plain values and arrays, the features' own among them."""
        plain, arrays = super().parts()
        features = plain.pop("features")
        if features is not None:
            more = features.parts()
            plain, arrays = plain | more[0], arrays | more[1]
        return plain, arrays

    @classmethod
    def from_parts(
        cls, plain: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], *, guarantee: Guarantee, salt: str
    ) -> Self:
        """Make the question from its parts; everything is validated anew."""
        parts = plain | arrays
        features = PublicFeatures.from_parts(parts) if own_parts(parts) else None
        return cls(**other_parts(parts), features=features, guarantee=guarantee, salt=salt)


__all__ = ["Descent"]
