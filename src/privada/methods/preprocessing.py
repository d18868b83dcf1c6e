"""Preprocessing that looks at no row: a scaler and an encoder that know public bounds and categories.

A transformer that is *fitted* to private rows, such as scikit-learn's `StandardScaler`, publishes something
of them, their means say, that nobody has paid for. What is here takes the schema's bounds and classes
instead; in a pipeline before a private estimator it costs nothing.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, PrivadaError
from privada.methods.frames import in_order, names_of
from privada.parties.schema import Schema


class PublicScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map features from public bounds to [0, 1]; values beyond the bounds are clipped.

    Parameters
    ----------
    bounds : (low, high), default=None
        Public limits of the features, numbers or one for each; or
    schema : Schema, default=None
        whose bounds they are.

    Attributes
    ----------
    low_, high_ : arrays
        The limits; nothing of the rows that ``fit`` was given, but their number of columns.
    feature_names_in_ : array
        Names of the columns, if ``fit`` was given a frame: the schema's, or else the frame's. Later frames
        may have them in another order.

    Privacy
    -------
    ``fit`` reads no value of any row. The private estimator after it has ``bounds=(0, 1)``.

    Examples
    --------
    >>> PublicScaler(bounds=([0, 10], [4, 30])).fit_transform([[1, 20], [9, 10]]).tolist()
    [[0.25, 0.5], [1.0, 0.0]]
    """

    def __init__(self, *, bounds: Any = None, schema: Schema | None = None) -> None:
        self.bounds = bounds
        self.schema = schema

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Take the limits from the settings."""
        if (self.bounds is None) == (self.schema is None):
            raise InputError("Expected bounds=(low, high), or a schema that has them; one of both.")
        width = np.shape(X)[1] if np.ndim(X) == 2 else 0
        if self.schema is not None:
            low, high = self.schema.box.low, self.schema.box.high
        else:
            low, high = self.bounds
        try:
            ends = [np.broadcast_to(np.asarray(end, dtype=np.float64), (width,)) for end in (low, high)]
        except ValueError:
            raise InputError(f"Expected bounds of {width} features, or one for all of them.") from None
        if not width or not np.isfinite(ends).all() or not np.all(ends[0] < ends[1]):
            raise InputError("Expected finite bounds, each low below its high, and rows of two dimensions.")
        self.low_, self.high_ = ends
        self.n_features_in_ = width
        self._keep_names(X)
        return self

    def _keep_names(self, X: Any) -> None:
        self.__dict__.pop("feature_names_in_", None)
        names = names_of(X)
        if names is not None:
            columns = names if self.schema is None else self.schema.features
            self.feature_names_in_ = np.array(columns, dtype=object)

    def transform(self, X: Any) -> FloatArray:
        """Rows between 0 and 1."""
        rows = self._rows(X)
        return (np.clip(rows, self.low_, self.high_) - self.low_) / (self.high_ - self.low_)

    def inverse_transform(self, X: Any) -> FloatArray:
        """Rows in their own units."""
        return self._rows(X) * (self.high_ - self.low_) + self.low_

    def _rows(self, X: Any) -> FloatArray:
        if not hasattr(self, "low_"):
            self.fit(X)
        names = getattr(self, "feature_names_in_", None)
        rows = in_order(X, None if names is None else tuple(names), name="X")
        return _check.matrix(X=rows, width=self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class PublicEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a frame's columns as an owner does: by its public schema, and by nothing else.

    Numbers are clipped to their bounds, categories become one column for each public value, and a missing
    value a mark, where the schema allows it.

    Parameters
    ----------
    schema : Schema
        Columns, bounds, categories and what may be missing.

    Privacy
    -------
    ``fit`` reads no value of any row. A value that is not in the schema is an error that does not show it.

    Examples
    --------
    >>> from privada import Category, Number, Schema
    >>> schema = Schema(columns=[Number(name="age", low=0, high=100),
    ...                          Category(name="sex", values=("f", "m"))])
    >>> PublicEncoder(schema=schema).fit_transform({"age": [130, 20], "sex": ["m", "f"]}).tolist()
    [[100.0, 0.0, 1.0], [20.0, 1.0, 0.0]]
    """

    def __init__(self, *, schema: Schema | None = None) -> None:
        self.schema = schema

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Check the schema."""
        if not isinstance(self.schema, Schema):
            raise InputError(f"Expected schema to be a Schema, got {type(self.schema).__name__}.")
        self.n_features_out_ = self.schema.width
        return self

    def transform(self, X: Any) -> FloatArray:
        """Encoded features."""
        self.fit()
        assert self.schema is not None
        return np.asarray(self.schema.encode(X), dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:  # noqa: ARG002
        """Names of the encoded features."""
        self.fit()
        assert self.schema is not None
        return np.asarray(self.schema.features, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def unpaid_steps(pipeline: Pipeline) -> list[str]:
    """Names of a pipeline's steps, but the last, that would learn from private rows without paying.

    Not among them: steps that need no fit, as those of this module, and `FrozenEstimator`, whose inside was
    fitted before, to public rows.
    """
    return [name for name, step in pipeline.steps[:-1] if not _is_public(step)]


def _is_public(step: Any) -> bool:
    if step is None or step == "passthrough" or isinstance(step, FrozenEstimator):
        return True
    if isinstance(step, Pipeline):
        return all(_is_public(inner) for _, inner in step.steps)
    try:
        return not get_tags(step).requires_fit
    except (AttributeError, TypeError, PrivadaError):
        return False


def make_private_pipeline(*steps: Any) -> Pipeline:
    """A pipeline before a private estimator, of steps that look at no private row.

    Parameters
    ----------
    *steps : transformers, and a private estimator last
        `PublicScaler`, `PublicEncoder`, transformers without a state, or ``FrozenEstimator(scaler)`` of one
        that was fitted to public rows.

    Raises
    ------
    InputError
        A step would be fitted to private rows.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from privada import CellClassifier
    >>> make_private_pipeline(StandardScaler(), CellClassifier())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    privada.exceptions.InputError: The step standardscaler would be fitted to private rows, ...
    """
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(*steps)
    if unpaid := unpaid_steps(pipeline):
        raise InputError(
            f"The step {unpaid[0]} would be fitted to private rows, which nobody pays for; use "
            f"PublicScaler, or FrozenEstimator({unpaid[0]}) fitted to public rows."
        )
    return pipeline


__all__ = ["PublicEncoder", "PublicScaler", "make_private_pipeline", "unpaid_steps"]
