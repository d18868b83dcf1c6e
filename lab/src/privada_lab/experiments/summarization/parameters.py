"""What the printed parameters guarantee, and how many owners a private choice asks: no data are needed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from privada.methods.summarization.questions.rounds import RoundPlan
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation
from privada.report.exhibit import Curves, Figure, Series
from privada_lab.experiments.summarization.market import FEATURES
from privada_lab.papers.summarization import printed_total, true_total

OWNERS = (4, 16, 64, 256)


def printed_privacy() -> Iterator[Figure]:
    """What the printed parameters claim, and true bounds for the same noise."""
    cases = {"validation": (0.01, 1656, 0.01), "summary": (0.01 / math.sqrt(500), 500, 1e-4)}
    reaches = {
        "validation": {"add_remove": (1, 1), "exact_q": (1, 2), "replace_one": (2, 2)},
        "summary": {"add_remove": (2, 2), "replace_one": (4, 4)},
    }
    for name, case in cases.items():
        claimed = printed_total(*case)
        for relation, (total, score) in reaches[name].items():
            value = true_total(*case, sum_reach=total, score_reach=score)
            beside = f"claimed {claimed:.4g}"
            yield Figure(f"printed_true_epsilon_{name}_{relation}", value, None, "lower", beside, 1)


def asked_owners() -> Iterator[Figure]:
    """Points that the round protocol would see beside p, if few owners were asked."""
    for k in OWNERS:
        value = _expected_asked(k)
        beside = "(3, 1e-5), 10 rounds, half of the budget; herding asks for p"
        yield Figure(f"rounds_owners_asked_of_{k}", value, None, "lower", beside, 1)


def asked_curve() -> Curves:
    """Owners asked against owners there."""
    asked = Series(
        name="asked in a round",
        x=OWNERS,
        mean=[_expected_asked(k) for k in OWNERS],
        error=[0.0] * len(OWNERS),
        role="ours",
    )
    every = Series(name="all owners", x=OWNERS, mean=OWNERS, error=[0.0] * len(OWNERS), role="bound")
    return Curves(
        title="Owners that a private choice asks",
        xlabel="owners K",
        ylabel="owners asked",
        series=(asked, every),
        logx=True,
        logy=True,
    )


def _expected_asked(k: int) -> float:
    """How many of k owners a round asks on average."""
    guarantee = ApproxDP(epsilon=3, delta=1e-5, relation=Relation.ADD_REMOVE)
    plan = RoundPlan(size=100, batch=10, dimension=FEATURES, guarantee=guarantee, ask_share=0.5)
    return float(plan.rule.expected_asked(k))


__all__ = ["OWNERS", "asked_curve", "asked_owners", "printed_privacy"]
