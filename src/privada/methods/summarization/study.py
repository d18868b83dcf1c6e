"""Summarization in a declarative study: the ``[method]`` table becomes an inquiry.

::

    [method]
    name = "summarization"
    consumer = "hospital"        # the owner that holds the validation set; all others contribute
    curator = "curator"          # as the owners' policies name it
    size = 400                   # rows of the summary
    gamma = 0.1                  # kernel exp(-gamma |x - y|²), in encoded units
    n_features = 140
    validation_epsilon = 1.4     # for the validation set; by default the study's budget
    validation_delta = 0.01
    denoised = true              # optional; owners correct for the noise of the target that they match
    embedded = false             # optional; rows are given as their public features, not as they are
    summary = "summary.npz"      # a new file for the curator: rows, labels and owners
    rounds = false               # optional; the round protocol instead of local matching
    batch = 10                   # of rounds: points taken in each
    ask_share = 0.0              # of rounds: share of the budget for asking few owners
    coalition = 1                # of rounds with an ask_share: how many owners may act together

Whoever runs a study in rounds is the curator, who draws the noise of broadcasts. Each start asks under a
name of its own, so that a study that is started again pays again: the same sum, broadcast twice with fresh
noise, would show more than was paid for.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from privada._toml import Section
from privada.methods import _study
from privada.methods.summarization.curator import CuratorNoise, repeat_draws, supply_noise
from privada.methods.summarization.learner.learn import Matching, forecast_summary, summarise
from privada.methods.summarization.learner.rounds import greedy_rounds, planned_round_asks
from privada.methods.summarization.learner.summary import Summary
from privada.methods.summarization.questions.matching import FourierEmbedding
from privada.parties.protocol import Inquiry, Learner
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee, make_guarantee


def inquire(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Inquiry[Summary]:
    """Make the inquiry that a study's ``[method]`` describes."""
    consumer = _study.known(section, "consumer", section.string("consumer"), schemas)
    sizes = _public_sizes(section, schemas)
    file = _new_file(section, home)
    matching = _matching(section, schemas[consumer].width, guarantee, seed)
    rounds = _rounds(section)
    section.done()
    validation_size = sizes.pop(consumer)
    if sum(sizes.values()) < matching.size:
        section.fail(
            "size", f"the owners have {sum(sizes.values())} rows, the summary wants {matching.size}."
        )
    if rounds is None:
        inquiry = summarise(consumer, validation_size, sizes, matching)
    else:
        matching = replace(matching, salt=f"{matching.salt} start {secrets.token_hex(16)}")
        with section.blaming("ask_share", "batch"):
            asks = tuple(planned_round_asks(consumer, sizes, matching, **rounds))
        draw = repeat_draws(CuratorNoise().draw)

        def start() -> Learner[Summary]:
            return supply_noise(greedy_rounds(consumer, validation_size, sizes, matching, **rounds), draw())

        inquiry = Inquiry(asks, start)

    def save(summary: Summary) -> Summary:
        """Write the rows for the curator, if a file was named."""
        if file is not None:
            summary.save(file)
        return summary

    expected = forecast_summary(matching, validation_size=validation_size)
    return replace(inquiry.then(save), optional_parties=frozenset(sizes), forecast=expected)


def _rounds(section: Section) -> dict[str, Any] | None:
    """The options of the round protocol, if it is wanted."""
    wanted = section.flag("rounds", False)
    given: dict[str, Any] = {
        "batch": section.whole("batch", None),
        "ask_share": section.number("ask_share", None),
        "coalition": section.whole("coalition", None),
    }
    named = {name: value for name, value in given.items() if value is not None}
    if named and not wanted:
        section.fail(next(iter(named)), "this is an option of rounds; add rounds = true.")
    return named if wanted else None


def _public_sizes(section: Section, schemas: Mapping[str, Schema]) -> dict[str, int]:
    sizes = {}
    for name, schema in schemas.items():
        if schema.size is None:
            section.fail("", f"a summary needs public sizes; the schema of {name} has none.")
        sizes[name] = schema.size
    if len({schema.width for schema in schemas.values()}) > 1:
        section.fail("", "the owners' schemas have different numbers of features.")
    if len(sizes) < 2:
        section.fail("consumer", "expected at least one owner beside the consumer.")
    return sizes


def _new_file(section: Section, home: Path) -> Path | None:
    name: str | None = section.string("summary", None)
    if name is None:
        return None
    if (home / name).exists():
        section.fail("summary", f"{name} is there already; name another file.")
    return home / name


def _matching(section: Section, width: int, guarantee: Guarantee, seed: int) -> Matching:
    numbers: dict[str, Any] = {
        name: section.number(f"validation_{name}", None) for name in ("epsilon", "delta", "rho")
    }
    features, gamma = section.whole("n_features", 140), section.number("gamma")
    size, curator = section.whole("size"), section.string("curator", "curator")
    denoised, embedded = section.flag("denoised", True), section.flag("embedded", False)
    with section.blaming("n_features", "gamma"):
        embedding = FourierEmbedding.of(width=width, n_features=features, gamma=gamma, random_state=seed)
    with section.blaming("validation_epsilon", "size"):
        validation = guarantee
        if any(value is not None for value in numbers.values()):
            validation = make_guarantee(**numbers, relation=guarantee.relation, unit=guarantee.unit)
        return Matching(
            embedding=embedding,
            size=size,
            validation=validation,
            owners=guarantee,
            curator=curator,
            denoised=denoised,
            embedded=embedded,
            salt="",
        )


__all__ = ["inquire"]
