"""Clustering: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privada import _check
from privada._deprecated import warn_of_parameter
from privada.exceptions import InputError, PrivadaError
from privada.methods.method import Method, Public, StudyPlace, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import Guarantee, split_alike
from privada.privacy.release import Question

if TYPE_CHECKING:
    from privada._arrays import FloatArray
    from privada.methods.clustering.learner.learn import Choice
    from privada.parties.schema import Schema

SALT = "0"  # as in studies of 0.2, whose paid answers can then be used again


def read_norm_bound(place: StudyPlace, key: str) -> float | None:
    """The ball's radius in a study, which 0.2 called ``radius``."""
    if "radius" in place.section and key not in place.section:
        warn_of_parameter("radius", key)
        key = "radius"
    radius: float | None = place.section.number(key, None)
    return radius


def read_question(place: StudyPlace, key: str) -> Question | None:
    """The question in a study's file."""
    name = place.section.string(key, None)
    if name is None:
        return None
    try:
        return Question.load(place.home / name)
    except PrivadaError as error:
        place.section.fail(key, str(error))


@dataclass(frozen=True, kw_only=True)
class Clustering(Method):
    """Choose k public target points beside a private source (paper 000)."""

    name = "clustering"
    title = "Choose target points beside a private source"
    paper = "000, Differentially Private Source-Target Clustering"
    situation = Situation(
        want="points",
        because="it chooses public points where private ones do not help already, from one noisy release.",
    )
    question_paths = (
        "privada.methods.clustering.questions.means:NearestMeans",
        "privada.methods.clustering.questions.multiscale:LocalMeans",
        "privada.methods.clustering.questions.means:NeighbourAverages",
        "privada.methods.clustering.questions.means:SourceRadius",
        "privada.methods.clustering.questions.multiscale:GridPyramid",
    )
    private_side = "source"
    model_parts = ("privada.methods.clustering.learner.bounds:LowerBound",)
    estimators: ClassVar[Mapping[str, str]] = {
        "any": "privada.methods.clustering.estimator:SourceTargetMedoids"
    }

    n_centers: int = setting(8, "How many target points to choose.")
    norm_bound: float | None = setting(
        None,
        "Radius of the public ball around 0 that holds source and target. Source rows beyond it are clipped; "
        "no radius is guessed.",
        read=read_norm_bound,
    )
    algorithm: str = setting(
        "auto",
        'What the source is asked for. "auto": counts in nested grids, or in more than three dimensions '
        'counts and means around centres of the target. "nna" and "nas", the algorithms of the paper made '
        "sound: the mean of the source rows nearest to each point of a coreset, or the average of its "
        "``bound_neighbours`` nearest source rows.",
        options=("auto", "nna", "nas"),
    )
    coreset_radius: float = setting(
        0.0,
        'With "nna" and "nas": every target point is within this distance of a point of the coreset; 0 takes '
        "all target points.",
    )
    question: Question | None = setting(
        None,
        "Ask this in the place of what ``algorithm`` says; in a study, a question file.",
        kind="Question",
        read=read_question,
    )
    source_size: int | None = setting(
        None,
        "Announced size of the source, by default that of its schema; it helps to choose the question in "
        "many dimensions.",
    )
    bound_share: float = setting(
        0.0,
        "Share of the budget for Δᵗ(S), the mean distance of the target to its ``bound_neighbours`` nearest "
        "source rows, which sharpens the bound on the cost; 0 spends nothing.",
    )
    bound_neighbours: int = setting(10, "t of Δᵗ(S): a larger t has less noise and a looser bound.")
    confidence: float = setting(0.95, "Probability with which the bound on the cost holds.")
    n_draws: int = setting(32, "Over how many plausible sources the choice is averaged.")

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[Choice]:
        """Choose the question from the target, the settings and the guarantee alone."""
        from privada.methods.clustering.learner.learn import GUESSED_SIZE, check_choice, forecast_gain, learn
        from privada.methods.clustering.questions.means import SourceRadius

        ((owner, schema),) = parties.items()
        ball = self.ball()
        target = check_choice(public.X, n_centers=self.n_centers, n_draws=self.n_draws)
        if not np.allclose(ball.clip(target), target, rtol=0, atol=1e-9 * ball.radius):
            raise InputError(f"Expected the target inside the ball of norm_bound={ball.radius:g} around 0.")
        _check.probability(confidence=self.confidence)
        about, asking = None, guarantee
        if self.bound_share:
            bounding, asking = split_alike(guarantee, _check.probability(bound_share=self.bound_share))
            t = _check.count(bound_neighbours=self.bound_neighbours)
            about = SourceRadius(targets=target, t=t, radius=ball.radius, guarantee=bounding, salt=SALT)
        size = self.source_size or schema.size
        question = self._question(target, ball.radius, asking, size)
        question.fits(schema)
        inquiry = learn(
            owner,
            target,
            question,
            n_centers=self.n_centers,
            n_draws=self.n_draws,
            radius=about,
            confidence=self.confidence,
            random_state=seed,
        )
        # A question of the caller's own may cost less than the guarantee allows.
        cost = question.guarantee if about is None else guarantee
        inquiry = inquiry.then(lambda choice: replace(choice, guarantee=cost))
        guess = size or max(len(target), GUESSED_SIZE)
        return replace(inquiry, forecast=forecast_gain(question, width=target.shape[1], size=guess))

    def ball(self) -> Ball:
        """The public ball around 0."""
        if self.norm_bound is None:
            raise InputError("Expected norm_bound, the radius of a public ball; none is guessed.")
        return Ball(radius=_check.positive(norm_bound=self.norm_bound))

    def _question(
        self, target: FloatArray, radius: float, guarantee: Guarantee, size: int | None
    ) -> Question:
        """The question to the source, which may cost so much."""
        from privada.methods.clustering.learner.learn import cover, default_question
        from privada.methods.clustering.questions.means import NearestMeans, NeighbourAverages

        if self.question is not None:
            if not self.question.guarantee <= guarantee:
                raise InputError(
                    f"Expected a question that costs at most {guarantee}, which bound_share="
                    f"{self.bound_share:g} leaves; it costs {self.question.guarantee}."
                )
            return self.question
        if self.algorithm == "auto":
            return default_question(
                target,
                n_centers=self.n_centers,
                guarantee=guarantee,
                radius=radius,
                source_size=size,
                salt=SALT,
            )
        coreset = cover(target, _check.non_negative(coreset_radius=self.coreset_radius))
        if self.algorithm == "nna":
            return NearestMeans(cells=coreset, radius=radius, guarantee=guarantee, salt=SALT)
        t = _check.count(bound_neighbours=self.bound_neighbours)
        return NeighbourAverages(targets=coreset, t=t, radius=radius, guarantee=guarantee, salt=SALT)


__all__ = ["Clustering"]
