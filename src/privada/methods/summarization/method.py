"""Summarization: the method and its settings."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privada._deprecated import warn_of_parameter
from privada.exceptions import InputError
from privada.methods.method import Method, Public, StudyPlace, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee, make_guarantee

if TYPE_CHECKING:
    from privada.methods.summarization.learner.learn import Matching
    from privada.methods.summarization.learner.summary import Summary
    from privada.parties.protocol import Learner
    from privada.parties.schema import Schema


def read_algorithm(place: StudyPlace, key: str) -> str:
    """The algorithm of a study; 0.2 said ``rounds = true``."""
    if "rounds" in place.section:
        warn_of_parameter("rounds", key)
        in_rounds = place.section.flag("rounds")
        return str(place.section.string(key, "rounds" if in_rounds else "local"))
    return str(place.section.string(key, "local"))


def read_new_file(place: StudyPlace, key: str) -> Path | None:
    """A file in the study's folder, which is not there yet."""
    name = place.section.string(key, None)
    return None if name is None else place.home / name


@dataclass(frozen=True, kw_only=True)
class Summarization(Method):
    """P training points from K private owners that match a private validation set (paper 004)."""

    name = "summarization"
    title = "A training summary from many owners that matches a private validation set"
    paper = "004, Differentially Private Distributed Data Summarization under Covariate Shift"
    situation = Situation(
        want="rows",
        because="noisy sums say whose rows look like those of a private validation set.",
    )
    question_paths = (
        "privada.methods.summarization.questions.matching:EmbeddingSum",
        "privada.methods.summarization.questions.matching:NearCount",
        "privada.methods.summarization.questions.rounds:Participation",
        "privada.methods.summarization.questions.rounds:RoundBids",
        "privada.methods.summarization.questions.rounds:RoundPoints",
        "privada.methods.summarization.questions.matching:SummaryRows",
        "privada.methods.summarization.questions.matching:EmbeddedRows",
    )
    asks_several = True

    size: int = setting(100, "How many rows the summary has.")
    gamma: float | None = setting(
        None,
        "Public parameter of the kernel ``exp(-gamma |x - y|²)``, in the units of the encoded rows; none is "
        "guessed.",
    )
    n_features: int = setting(140, "Random Fourier features, half of them cosines.")
    consumer: str = setting(
        "consumer",
        "The party that holds the validation set; all others contribute rows.",
        read=lambda place, key: place.section.string(key),  # a study has to name it
    )
    curator: str = setting("curator", "Who receives the rows, as the owners' policies name it.")
    validation_epsilon: float | None = setting(
        None, "The guarantee for the validation set; by default that for the owners' rows."
    )
    validation_delta: float | None = setting(None, "The probability beside ``validation_epsilon``.")
    validation_rho: float | None = setting(
        None, "The guarantee for the validation set in zCDP, in the place of ``validation_epsilon``."
    )
    denoised: bool = setting(
        True, "Owners remove from the noisy validation mean what their own rows cannot express."
    )
    embedded: bool = setting(
        False, "The curator gets public features of rows instead of rows. That is not differential privacy."
    )
    algorithm: str = setting(
        "local",
        '"local": each owner chooses rows that match the validation set, as many as a private allocation '
        'says. "rounds": the curator takes the best bids, in many rounds.',
        options=("local", "rounds"),
        read=read_algorithm,
    )
    batch: int | None = setting(None, "Of rounds: how many points are taken in each, by default 1.")
    ask_share: float | None = setting(
        None, "Of rounds: share of the budget for asking few owners; by default 0, which asks everyone."
    )
    coalition: int | None = setting(
        None, "Of rounds with an ``ask_share``: how many owners may act together, by default 1."
    )
    summary: str | Path | None = setting(
        None,
        "A new file for the curator, with rows, labels and owners.",
        kind='"summary.npz"',
        read=read_new_file,
    )

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[Summary]:
        """Ask the consumer and the owners; public rows are in the training set already (D_init).

        Whoever starts the inquiry is the curator, who draws the noise of broadcasts in rounds. Each inquiry
        in rounds asks under a name of its own, so that preparing it again pays again: the same sum, broadcast
        twice with fresh noise, would show more than was paid for. All starts of one inquiry broadcast alike.
        """
        from privada.methods.summarization.curator import CuratorNoise, repeat_draws, supply_noise
        from privada.methods.summarization.learner.learn import forecast_summary, summarise
        from privada.methods.summarization.learner.rounds import greedy_rounds, planned_round_asks
        from privada.methods.summarization.learner.summary import check_size

        matching = self.match(public, parties, guarantee, seed=seed)
        if self.summary is not None and Path(self.summary).exists():
            raise InputError(
                f"Expected summary to be a new file; {Path(self.summary).name} is there already."
            )
        sizes = read_sizes(parties)
        validation_size = sizes.pop(self.consumer)
        check_size(sizes, self.size)
        rounds: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("batch", "ask_share", "coalition")
            if getattr(self, name) is not None
        }
        if self.algorithm == "local":
            for name in rounds:
                raise InputError(f'Expected no {name} without "rounds", of which it is an option.')
            inquiry = summarise(self.consumer, validation_size, sizes, matching)
        else:
            matching = replace(matching, salt=f"{matching.salt} start {secrets.token_hex(16)}")
            asks = tuple(planned_round_asks(self.consumer, sizes, matching, **rounds))
            if matching.initial is not None:
                size = matching.initial.size
                rounds |= {"start": matching.initial.mean * size, "start_size": size}
            draw = repeat_draws(CuratorNoise().draw)

            def start() -> Learner[Summary]:
                return supply_noise(
                    greedy_rounds(self.consumer, validation_size, sizes, matching, **rounds), draw()
                )

            inquiry = Inquiry(asks, start)

        def save(summary: Summary) -> Summary:
            if self.summary is not None:
                summary.save(self.summary)
            return summary

        expected = forecast_summary(matching, validation_size=validation_size)
        return replace(inquiry.then(save), optional_parties=frozenset(sizes), forecast=expected)

    def match(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Matching:
        """The public settings of what is asked; also the parties are checked."""
        from privada.methods.summarization.learner.learn import InitialRows, Matching
        from privada.methods.summarization.questions.matching import FourierEmbedding

        if self.consumer not in parties:
            raise InputError(f"Expected consumer to be one of {', '.join(parties)}, got {self.consumer!r}.")
        if self.gamma is None:
            raise InputError("Expected gamma, the public parameter of the kernel; none is guessed.")
        if len(parties) < 2:
            raise InputError("Expected at least one owner beside the consumer.")
        widths = {schema.width for schema in parties.values()}
        if len(widths) > 1:
            raise InputError("The owners' schemas have different numbers of features.")
        embedding = FourierEmbedding.of(
            width=widths.pop(), n_features=self.n_features, gamma=self.gamma, random_state=seed
        )
        return Matching(
            embedding=embedding,
            size=self.size,
            validation=self.validation_guarantee(guarantee),
            owners=guarantee,
            curator=self.curator,
            denoised=self.denoised,
            embedded=self.embedded,
            initial=None if public.X is None else InitialRows.public(public.X, embedding),
        )

    def validation_guarantee(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee for the validation set, beside the one for the owners' rows."""
        numbers = (self.validation_epsilon, self.validation_delta, self.validation_rho)
        if numbers == (None, None, None):
            return guarantee
        epsilon, delta, rho = numbers
        try:
            return make_guarantee(
                epsilon=epsilon, delta=delta, rho=rho, relation=guarantee.relation, unit=guarantee.unit
            )
        except InputError as error:
            raise InputError(f"validation_epsilon, validation_delta or validation_rho: {error}") from None


def read_sizes(parties: Mapping[str, Schema]) -> dict[str, int]:
    """The public size of every party."""
    sizes = {}
    for name, schema in parties.items():
        if schema.size is None:
            raise InputError(f"Expected public sizes of all parties; the schema of {name} has none.")
        sizes[name] = schema.size
    return sizes


__all__ = ["Summarization"]
