"""The default: every setting from public quantities, then a descent, before which a little may be asked.

`plan` fits the warm start, chooses the settings by a rehearsal on the public source, and makes the
questions. Numbers are asked for a discrepancy and a portrait where they can tell something; classes for one
gradient, which says where to start, or which is all where the noise of a descent is loud (`one_gradient`).
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError, PrivadaWarning
from privada.methods.linear.questions import public
from privada.methods.reweighting.learner import geometry, rehearsal
from privada.methods.reweighting.learner.geometry import Scaling
from privada.methods.reweighting.learner.learn import AdaptedModel, learn_after, learn_from, learn_selected
from privada.methods.reweighting.learner.one_gradient import LOUD, OneGradient, loudness
from privada.methods.reweighting.learner.portrait import Likeness
from privada.methods.reweighting.learner.rehearsal import Rehearsed
from privada.methods.reweighting.learner.shrinkage import Shrinkage
from privada.methods.reweighting.learner.stage import (
    DISCREPANCY_AT,
    RADII,
    RESIDUALS,
    STEPS,
    Noise,
    Settings,
    Source,
)
from privada.methods.reweighting.questions.descent import Descent
from privada.methods.reweighting.questions.discrepancy import Discrepancy
from privada.methods.reweighting.questions.portrait import Portrait
from privada.methods.reweighting.questions.supremum import moments
from privada.parties.protocol import Ask, Foreseen, Learner
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]
DISCREPANCY_SHARE, PORTRAIT_SHARE, SELECTION_SHARE, START_SHARE = 0.05, 0.1, 0.1, 0.1
SELECTIONS = ("public", "private")
LARGEST_LOSS = {"squared": 9.0, "logistic": 3.0, "softmax": 5.0}  # that validation sees; in squared residuals
# where nothing can be rehearsed; a correction is believed as far as its own size speaks for it
FALLBACK = Settings(relative=1e-2, threshold=0.5, alpha=0.3, step_size=0.06, shrink=True)
MOST_REMEMBERED = 16
_REMEMBERED: dict[bytes, tuple[float, Rehearsed | None]] = {}
ENOUGH = -0.01  # log of the rehearsed loss over the warm start's, above which public data alone would do


@dataclass(frozen=True, kw_only=True, eq=False)
class DescentPlan:
    """All that is public of an adaptation: warm start, coordinates, rehearsal, guarantee.

    Where noise is ``loud``, one gradient is asked for, and nothing is rehearsed.
    """

    size: int
    guarantee: Guarantee
    source: Source
    rehearsed: Rehearsed | None
    alpha: float | None
    selection: str = "public"
    loud: bool = False
    salt: str = ""

    @property
    def loss(self) -> str:
        """The loss by name."""
        return self.source.loss

    @property
    def unit(self) -> float:
        """What thresholds are relative to."""
        return self.source.unit

    def settings(self, discrepancy: float | None = None) -> Settings:
        """Chosen by rehearsal, or the fallback where the source is too small for one."""
        if self.rehearsed is None:
            return FALLBACK if self.alpha is None else replace(FALLBACK, alpha=self.alpha)
        far = None if discrepancy is None else discrepancy / self.unit**2
        return self.rehearsed.best(far, plain=self.selection == "private")[0]

    @property
    def forecast(self) -> float:
        """Loss after adaptation over the warm start's, as rehearsed; 1 if nothing could be rehearsed."""
        return 1.0 if self.rehearsed is None else math.exp(self.rehearsed.best()[1])

    @property
    def one_gradient(self) -> OneGradient:
        """What is asked before a descent of classes, or instead of one where noise is loud."""
        return OneGradient(source=self.source, size=self.size, guarantee=self.guarantee, salt=self.salt)

    def descent(
        self, settings: Settings, guarantee: Guarantee | None = None, like: Likeness | None = None
    ) -> tuple[Descent, Shrinkage | None]:
        """The question for some settings, and what is known of its errors if they shrink it."""
        made, h = self.source.map(settings, like), geometry.CURVATURE[self.loss]
        start, intercepts = self.source.scaling.unscaled(self.source.start)
        transform, shift = self.source.scaling.unscaled(made.transform)
        question = Descent(
            size=self.size,
            weights=start,
            intercepts=intercepts,
            transform=transform,
            shift=shift,
            curvature=h * np.eye(transform.shape[1]),
            radius=made.radius,
            threshold=settings.threshold * self.unit,
            alpha=settings.alpha,
            loss=self.loss,
            steps=STEPS,
            step_size=settings.step_size / h,
            guarantee=self.guarantee if guarantee is None else guarantee,
            salt=self.salt,
        )
        known = self.source.shrinkage(made.curvatures, settings.threshold) if settings.shrink else None
        return question, known

    def portrait(self, guarantee: Guarantee) -> Portrait:
        """The question about the public cells that the private rows fill, and their mean."""
        cells = self.source.cells
        if cells is None:
            raise InputError("Public rows are too few, or have too few directions, for cells.")
        transform, shift = self.source.scaling.unscaled(cells.transform)
        return Portrait(
            size=self.size,
            transform=transform,
            shift=shift,
            centers=cells.centers,
            radius=cells.radius,
            guarantee=guarantee,
            salt=self.salt,
        )

    def discrepancy(self, guarantee: Guarantee) -> Discrepancy:
        """The question about the discrepancy around the warm start, in the map's coordinates."""
        source = self.source
        P = source.spectrum.map(DISCREPANCY_AT)
        radius, bound = geometry.radius_of(source.rows @ P), RESIDUALS * self.unit
        left = np.clip(source.labels - (source.rows @ source.start)[:, 0], -bound, bound)
        weights, intercepts = source.scaling.unscaled(source.start)
        transform, shift = source.scaling.unscaled(P)
        return Discrepancy(
            size=self.size,
            weights=weights[:, 0],
            intercept=float(intercepts[0]),
            transform=transform,
            shift=shift,
            source_moments=moments(geometry.clipped(source.rows @ P, radius), left),
            radius=radius,
            label_bound=bound,
            hypothesis_radius=RADII * self.unit,
            guarantee=guarantee,
            salt=self.salt,
        )

    def worth_asking(self, question: Discrepancy) -> bool:
        """Whether the noise on the discrepancy is below its spread over the rehearsed parts."""
        if self.rehearsed is None or len(self.rehearsed.rows) < 3:
            return False
        spread = float(np.std(self.rehearsed.discrepancies)) * self.unit**2
        return question.plan.draws["discrepancy"].half_width(0.68) < spread

    def learner(self, owner: str) -> Learner[AdaptedModel]:
        """Ask for the discrepancy and a portrait where they can tell something, then for the descent.

        Of classes: for one gradient, then for the descent, unless noise is loud.
        With private selection: for the descent, then for a choice between its model and the public one.
        """
        if self.loud:
            return self.one_gradient.learner(owner)
        self.warn()
        if _chooses_start(self.loss, self.alpha, self.selection):
            return self._from_gradient(owner)
        if self.selection == "private":
            share, rest = public.pieces(self.guarantee, SELECTION_SHARE)
            most = LARGEST_LOSS[self.loss] * self.unit**2
            question, known = self.descent(self.settings(), rest)
            return learn_selected(
                owner, question, known, largest_loss=most, share=share, guarantee=self.guarantee
            )
        first, rest = self._first()

        def second(discrepancy: float | None) -> Portrait | None:
            if not self.settings(discrepancy).likeness:
                return None
            share = public.shares(rest, PORTRAIT_SHARE)[0]
            return None if share is None else self.portrait(share)

        def then(discrepancy: float | None, release: Release | None) -> tuple[Descent, Shrinkage | None]:
            settings = self.settings(discrepancy)
            if release is None:
                return self.descent(settings, rest)
            share, left = public.shares(rest, PORTRAIT_SHARE)
            assert share is not None
            return self.descent(settings, left, self._likeness(self.portrait(share), release))

        asking = learn_after(owner, first, second, then, guarantee=self.guarantee)
        return Foreseen(asking, self._foreseen(owner, second(None) if first is None else first, rest))

    def _foreseen(self, owner: str, first: Discrepancy | Portrait | None, rest: Guarantee) -> Iterator[Ask]:
        """What is asked in all; a portrait after a discrepancy is paid out of the descent's part."""
        if first is not None:
            yield Ask(owner, first)
        left = public.shares(rest, PORTRAIT_SHARE)[1] if isinstance(first, Portrait) else rest
        yield Ask(owner, self.descent(self.settings(), left)[0])

    def _from_gradient(self, owner: str) -> Learner[AdaptedModel]:
        """Ask for one gradient, then for a descent from the start that it speaks for."""
        share, rest = public.shares(self.guarantee, START_SHARE)
        assert share is not None
        asked = replace(self.one_gradient, guarantee=share)
        first = asked.question

        def then(release: Release) -> tuple[Descent, Shrinkage | None]:
            source = replace(self.source, start=asked.start(first, release))
            return replace(self, source=source).descent(self.settings(), rest)

        asking = learn_from(owner, first, then, guarantee=self.guarantee)
        return Foreseen(asking, [Ask(owner, first), Ask(owner, self.descent(self.settings(), rest)[0])])

    def _likeness(self, question: Portrait, release: Release) -> Likeness:
        """What a released portrait says of the target."""
        assert self.source.cells is not None
        shares, mean = (np.asarray(release[name]) / self.size for name in ("counts", "sums"))
        noise = (question.noise("counts") / self.size, question.noise("sums") / self.size)
        return self.source.cells.portrait(shares, mean, noise)

    def _first(self) -> tuple[Discrepancy | None, Guarantee]:
        """The discrepancy, where alpha is open and the noise lets it tell something; what is left."""
        share, rest = public.shares(self.guarantee, DISCREPANCY_SHARE)
        if self.alpha is not None or self.loss != "squared" or share is None:
            return None, self.guarantee
        question = self.discrepancy(share)
        return (question, rest) if self.worth_asking(question) else (None, self.guarantee)

    def warn(self) -> None:
        """Say so if the rehearsal found no gain over the public model."""
        if self.rehearsed is not None and self.rehearsed.best()[1] > ENOUGH:
            warnings.warn(
                "On public data, adapting at this guarantee and size gained nothing over the public model, "
                "which alone would do as well. Ask for a larger epsilon, or keep the budget.",
                PrivadaWarning,
                stacklevel=4,
            )


def plan(
    Xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    *,
    loss: str,
    size: int,
    guarantee: Guarantee,
    n_outputs: int = 1,
    groups: npt.ArrayLike | None = None,
    alpha: float | None = None,
    standardize: bool = True,
    selection: str = "public",
    random_state: int | None = None,
    salt: str = "",
) -> DescentPlan:
    """Fit the warm start and rehearse on the public source.

    Parameters
    ----------
    Xs, ys : arrays
        Public source; class labels as codes.
    size : int
        Public number of private rows.
    groups : array, optional
        Domain of each public row; by default clusters play the domains.
    alpha : float, optional
        Weight of the public data; by default chosen, by the released discrepancy where that can tell.
    selection : "public" or "private"
        Whether all settings come from public data, or a tenth of the budget chooses between the public
        model, half of the correction and all of it, on the private rows.
    """
    public.replaced(guarantee)
    public.gaussian(guarantee, "An adaptation")
    X, y = _source(Xs, ys, loss)
    if alpha is not None and _check.share(alpha=alpha) == 1:
        raise InputError("Expected alpha below 1: at 1 public data alone count, and nothing need be asked.")
    seed = 0 if random_state is None else int(random_state)
    rows = Scaling.of(X, standardize=standardize)(X)
    parts = rehearsal.parts_of(rows, _groups(groups, len(X)), seed)
    _check.one_of(SELECTIONS, selection=selection)
    chooses = _chooses_start(loss, alpha, selection)
    loud = chooses and _is_loud(guarantee, size, rows)
    spent = START_SHARE if chooses and not loud else 0.0
    penalty, rehearsed = _rehearsed(
        X,
        y,
        parts,
        loss=loss,
        noise=_noise(public.shares(guarantee, spent)[1], _check.count(size=size)),
        size=size,
        n_outputs=n_outputs,
        standardize=standardize,
        alphas=None if alpha is None else (alpha,),
        drift=groups is None,
        seed=seed,
        loud=loud,
    )
    return DescentPlan(
        size=size,
        guarantee=guarantee,
        source=Source.of(loss, X, y, penalty, n_outputs, standardize, seed),
        rehearsed=rehearsed,
        alpha=alpha,
        selection=selection,
        loud=loud,
        salt=salt,
    )


def _chooses_start(loss: str, alpha: float | None, selection: str) -> bool:
    """Whether a gradient is asked for: of classes, unless the weight of public data is given or chosen."""
    return loss != "squared" and alpha is None and selection == "public"


def _is_loud(guarantee: Guarantee, size: int, rows: FloatArray) -> bool:
    directions = min(*rows.shape, geometry.MOST_DIRECTIONS)
    return loudness(guarantee, size=_check.count(size=size), directions=directions) > LOUD


def _rehearsed(
    X: FloatArray, y: npt.NDArray[Any], parts: npt.NDArray[np.int64], *, loud: bool, **how: Any
) -> tuple[float, Rehearsed | None]:
    """Penalty of the warm start, and the rehearsal; remembered for the same public rows and settings."""
    digest = hashlib.sha256(repr((X.shape, loud, sorted(how.items()))).encode())
    for array in (X, y, parts):
        digest.update(np.ascontiguousarray(array).tobytes())
    key = digest.digest()
    if key not in _REMEMBERED:
        rows = Scaling.of(X, standardize=how["standardize"])(X)
        penalty = rehearsal.warm_penalty(how["loss"], rows, y, parts, how["n_outputs"])
        while len(_REMEMBERED) >= MOST_REMEMBERED:
            _REMEMBERED.pop(next(iter(_REMEMBERED)))
        played = None if loud else rehearsal.rehearse(X=X, y=y, parts=parts, penalty=penalty, **how)
        _REMEMBERED[key] = penalty, played
    return _REMEMBERED[key]


def _noise(guarantee: Guarantee, size: int) -> Noise:
    """What a step's gradient and the portrait will get."""
    mu, rows = guarantee.gaussian_mu(), guarantee.unit.max_rows
    rate, share = 2 * rows / size * math.sqrt(STEPS) / mu, mu * math.sqrt(PORTRAIT_SHARE / 2)
    portrait = (math.sqrt(2) * rows / size / share, 2 * rows / size / share)
    return Noise(rate, rate / math.sqrt(1 - PORTRAIT_SHARE), portrait)


def _source(Xs: npt.ArrayLike, ys: npt.ArrayLike, loss: str) -> tuple[FloatArray, npt.NDArray[Any]]:
    X = _check.matrix(Xs=Xs)
    y = np.asarray(ys, dtype=np.float64)
    if y.shape != (len(X),) or not np.isfinite(y).all():
        raise InputError("Expected ys to be one finite label for each public row.")
    if len(X) < 2:
        raise InputError("Expected at least two public rows; without them train on the target alone.")
    if loss == "squared" and not y.any():
        raise InputError("Expected public labels other than 0: they give the scale of the private ones.")
    return X, y if loss == "squared" else y.astype(np.int64)


def _groups(groups: Sequence[Any] | npt.ArrayLike | None, rows: int) -> npt.ArrayLike | None:
    if groups is not None and np.shape(groups) != (rows,):
        raise InputError("Expected groups to be one domain for each public row.")
    return groups


__all__ = ["DescentPlan", "plan"]
