"""Both sides in one process: what the estimators of a hidden target share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError, PrivadaWarning
from privada.methods.domains import refuse_masked, split_domains
from privada.methods.estimating import PrivateEstimator, check_owner
from privada.methods.forecast import Forecast
from privada.methods.marginals.learner.learn import Public
from privada.methods.models.model_plot import Map, Numbers, PublicRows, group_points
from privada.methods.pictures import Points
from privada.parties.protocol import Inquiry
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Guarantee


class HiddenTargetEstimator(PrivateEstimator, ABC):
    """An owner of the rows given to ``fit``, asked by a learner that has a public source."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    predicts_target_labels = True  # skada leaves the labels of the target to those who learn from them

    public_settings: ClassVar[tuple[str, ...]]  # which nobody takes from private rows
    bounds: Any
    size: int | None
    random_state: int
    insecure_seed: int | None

    @abstractmethod
    def _label(self) -> Category | Number:
        """The label's column, from public settings."""

    def _schema(self, width: int) -> Schema:
        for name in self.public_settings:
            if (self._bounds() if name == "bounds" else getattr(self, name)) is None:
                raise InputError(f"Expected {name}, which is public; none is taken from private rows.")
        try:
            low, high = (np.asarray(side, dtype=np.float64) for side in self._bounds())
            np.broadcast_to(low, (width,)), np.broadcast_to(high, (width,))
        except (TypeError, ValueError):
            raise InputError(
                f"Expected bounds to be (low, high), each a number or one for each of {width} features, "
                f"got {self.bounds!r}."
            ) from None
        return Schema.of_numbers(bounds=self._bounds(), width=width, size=self.size, label=self._label())

    def _public(self, source: Any, model: Any) -> tuple[Public, Schema]:
        """What the learner has, and what both sides agree on."""
        if source is None:
            raise InputError("Expected source, the public unlabelled rows.")
        rows = _check.matrix(source=source)
        schema = self._schema(rows.shape[1])
        public = Public(
            source=schema.box.clip(rows),
            classes=schema.class_names,
            classifier=model,
            seed=_check.count(least=0, random_state=self.random_state),
        )
        return public, schema

    def _announce(self, forecast: Forecast) -> None:
        """Keep what is expected, and say so where that is nothing: before anything is spent."""
        self.forecast_ = forecast
        if not forecast.worthwhile:
            warnings.warn(
                f"Expected {forecast}: too few rows for this much noise. "
                "Ask for a larger epsilon, or keep the budget.",
                PrivadaWarning,
                stacklevel=3,
            )

    def _hear(
        self,
        learner: Inquiry[Any],
        X: Any,
        y: Any,
        person: Any,
        schema: Schema,
        guarantee: Guarantee,
        owner: Any,
    ) -> None:
        """Let the learner ask an owner of the rows, with the guarantee as its budget."""
        check_owner(owner, X=X, y=y)
        if owner is None and (y is None or np.ndim(y) != 1):
            raise InputError("Expected y, one label for each of the private rows.")
        held = self._hold(
            np.asarray(X),
            [],
            y=np.asarray(y),
            person=person,
            schema=schema,
            budget=guarantee,
            name="fit",
            owner=owner,
        )
        keep_fit(self, self._ask(learner, {"owner": held}), guarantee=guarantee)
        self.n_features_in_ = schema.width

    @abstractmethod
    def _groups(self) -> tuple[npt.NDArray[Any], list[Any]]:
        """What the rows of the source are labelled with, in words, and all such words."""

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """The public source as it was labelled."""
        made = self.synthetic_target_
        plane, (labels, names) = self._flattening(made.X), self._groups()
        layers = [] if rows is None else [Points(name="rows (public)", at=plane.apply(rows.at), role="limit")]
        groups = group_points(plane.apply(made.X), labels, names)
        title = "public source, as the releases label it"
        return [Map(title=title, layers=layers, groups=groups, axes=plane.names)]

    def _clipped(self, X: Any) -> npt.NDArray[np.float64]:
        rows = self._matrix(X)
        return np.asarray(np.clip(rows, *self._bounds()))


def keep_fit(model: Any, found: Any, *, guarantee: Guarantee) -> None:
    """Give an estimator what was learnt: here, or in a study."""
    model.fit_, model.guarantee_ = found, guarantee
    model.releases_, model.release_ = found.releases, found.releases[-1]
    model.model_, model.synthetic_target_ = found.model, found.synthetic


def tell_apart(source: Any, X: Any, y: Any, sample_domain: Any) -> tuple[Any, Any, Any]:
    """Public source, private target and its labels: given apart, or together with ``sample_domain``."""
    if sample_domain is None:
        return source, X, y
    if source is not None:
        raise InputError("Expected the source in X with sample_domain, or as source; not both.")
    domains = split_domains(X, y, sample_domain=sample_domain)
    refuse_masked(domains.target.y)
    return domains.source.X, domains.target.X, domains.target.y


__all__ = ["HiddenTargetEstimator", "tell_apart"]
