"""PCnvxAdap and PNCnvxAdap with their discrepancy: shares, price, what is learned, nothing paid in vain."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privada import Owner
from privada.exceptions import InputError, PrivadaError
from privada.methods.linear.questions.losses import values
from privada.methods.reweighting import (
    ConvexAdaptation,
    NonconvexAdaptation,
    Penalties,
    learn_convex,
    learn_nonconvex,
)
from privada.methods.reweighting.learner.adaptation import SHARE
from privada.methods.reweighting.questions.supremum import labelled
from privada.parties import Category, Number, Schema
from privada.parties.running import run
from privada.privacy import ZCDP, ApproxDP
from privada.privacy.accounting import accountant

RO = {"relation": "replace-one"}
M, N = 150, 300
NAMES = np.array(["a", "b", "c"])
RNG = np.random.default_rng(5)
SOURCE, TARGET = RNG.uniform(-0.6, 0.6, size=(M, 2)), RNG.uniform(-0.6, 0.6, size=(N, 2))
RULES = {
    "convex": (np.array([0.8, 0.1]), np.array([0.8, -0.7])),
    "two": (np.array([1.0, 0.2]), np.array([1.0, -1.0])),
    "three": (
        np.array([[1.0, -0.5, -0.5], [0.0, 0.8, -0.8]]),
        np.array([[0.4, -1.0, 0.6], [0.9, 0.1, -1.0]]),
    ),
}
LEARN = {"convex": learn_convex, "two": learn_nonconvex, "three": learn_nonconvex}
TOLD = Penalties(alpha=0.3, discrepancy=1.0)


def labels(kind, X, rule):
    if kind == "convex":
        return X @ rule
    return (X @ rule > 0).astype(int) if kind == "two" else (X @ rule).argmax(axis=1)


def question(kind, **more):
    settings = {
        "size": N,
        "source": SOURCE,
        "source_labels": labels(kind, SOURCE, RULES[kind][0]).astype(float),
        "penalties": Penalties(alpha=0.3),
        "A": 4.0 if kind != "convex" else 1.5,
        "r": 1.0,
        "steps": 40,
        "step_scale": 20.0 if kind == "convex" else 1.0,
        "guarantee": ApproxDP(epsilon=20, delta=1e-5, **RO),
    }
    if kind == "three":
        settings["n_classes"] = 3
    return (ConvexAdaptation if kind == "convex" else NonconvexAdaptation)(**(settings | more))


def owner(kind, budget, **more):
    label = (
        Number(name="label", low=-1.0, high=1.0)
        if kind == "convex"
        else Category(name="label", values=tuple(NAMES[: 2 if kind == "two" else 3].tolist()))
    )
    y = labels(kind, TARGET, RULES[kind][1])
    return Owner(
        TARGET,
        y=y if kind == "convex" else NAMES[y],
        schema=Schema.of_numbers(bounds=(-1.0, 1.0), width=2, size=N, label=label),
        dataset="target",
        budget=budget,
        accounting="gaussian" if isinstance(budget, ApproxDP) else None,
        **more,
    )


def adapted(kind, insecure_seed=None, **more):
    asked = question(kind, **more)
    held = owner(kind, asked.guarantee, insecure_seed=insecure_seed)
    return run(LEARN[kind]("clinic", asked), {"clinic": held}), held


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize(
    "guarantee",
    [ApproxDP(epsilon=1, delta=1e-5, **RO), ZCDP(rho=0.4, **RO)],
    ids=["approximate", "zcdp"],
)
def test_both_questions_together_cost_the_guarantee_and_no_more(kind, guarantee):
    """μ² is 5 % for the discrepancy and 95 for w; an owner of that budget pays it."""
    made, held = adapted(kind, guarantee=guarantee)
    whole = guarantee.gaussian_mu() ** 2
    mus = [release.guarantee.gaussian_mu() for release in made.releases]
    assert math.fsum(mu**2 for mu in mus) == pytest.approx(whole, rel=1e-12)
    assert mus[0] ** 2 == pytest.approx(SHARE * whole, rel=1e-12)
    first, draws = mus[0] ** 2, made.question.plan.draws
    assert sum(draw.mu**2 for draw in draws.values()) / whole == pytest.approx(0.95, rel=1e-6)
    spent = first + accountant.gaussian_mu(made.question.price.event) ** 2
    assert whole * (1 - 1e-6) <= spent <= whole
    assert made.guarantee == guarantee
    with pytest.raises(PrivadaError, match="budget"):
        held.answer(replace(made.question, guarantee=guarantee.part(0.01), salt="again"))


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
@pytest.mark.parametrize("kind", RULES)
def test_the_target_is_learned(kind):
    """At a large epsilon: better than the source's rule, with the released discrepancy in the objective."""
    made, _ = adapted(kind, insecure_seed=4)
    assert [release.kind for release in made.releases] == [
        f"reweighting.{'' if kind == 'convex' else 'finite-'}discrepancy",
        f"reweighting.{'' if kind == 'convex' else 'non'}convex",
    ]
    assert made.question.penalties.discrepancy == made.discrepancy
    assert made.discrepancy == pytest.approx(made.releases[0]["discrepancy"][0])
    X = np.random.default_rng(9).uniform(-0.6, 0.6, size=(2000, 2))
    y, alone = labels(kind, X, RULES[kind][1]), X @ RULES[kind][0]
    if kind == "convex":
        assert np.mean((made.scores(X) - y) ** 2) < 0.4 * np.mean((alone - y) ** 2)
    else:
        found, before = ((s > 0) if kind == "two" else s.argmax(axis=1) for s in (made.scores(X), alone))
        assert np.mean(found == y) > np.mean(before == y) + 0.1
    assert made.to_dict()["coef"] == made.coef.tolist()


def test_the_discrepancy_is_the_papers():
    """Little noise: the exact supremum over the ball; the largest difference over hypotheses."""
    much = ApproxDP(epsilon=2000, delta=1e-5, **RO)
    made, _ = adapted("convex", guarantee=much)
    y = labels("convex", TARGET, RULES["convex"][1])
    exact = labelled(SOURCE, made.question.source_labels, TARGET, y, radius=1.5).value
    assert made.discrepancy == pytest.approx(exact, abs=1e-2)
    asked = question("three", guarantee=much)
    hypotheses = np.random.default_rng(1).normal(size=(5, 2, 3))
    ask, *_ = learn_nonconvex("clinic", asked, hypotheses=hypotheses).asks
    told = owner("three", much).answer(ask.question)["discrepancy"][0]
    codes = labels("three", TARGET, RULES["three"][1])
    means = [
        [values("softmax", X @ h, y).mean() for h in hypotheses]
        for X, y in ((SOURCE, asked.source_labels), (TARGET, codes))
    ]
    assert told == pytest.approx(np.abs(np.subtract(*means)).max(), abs=1e-2)


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_a_negative_release_counts_as_zero_and_a_large_one_as_the_largest_loss():
    asked = question("convex", guarantee=ApproxDP(epsilon=0.01, delta=1e-5, **RO), steps=2)
    seen = set()
    for seed in range(12):
        held = owner("convex", asked.guarantee, insecure_seed=seed)
        made = run(learn_convex("clinic", asked), {"clinic": held})
        told = made.releases[0]["discrepancy"][0]
        assert made.discrepancy == min(max(told, 0.0), asked.largest_loss)
        seen.add(made.discrepancy if made.discrepancy in (0.0, asked.largest_loss) else "between")
    assert 0.0 in seen


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: learn_convex("clinic", question("two")), "ConvexAdaptation"),
        (lambda: learn_nonconvex("clinic", question("convex")), "NonconvexAdaptation"),
        (
            lambda: learn_convex("clinic", question("convex", penalties=TOLD)),
            "got 1",
        ),
        (lambda: learn_convex("clinic", question("convex", r=1e-30)), "exponent"),
        (lambda: learn_nonconvex("clinic", question("two"), hypotheses=np.zeros((2, 3))), "hypotheses"),
        (lambda: learn_nonconvex("clinic", question("two"), hypotheses=np.zeros((0, 2))), "hypotheses"),
        (lambda: learn_nonconvex("clinic", question("two"), hypotheses=[[np.nan, 0.0]]), "finite"),
        (lambda: learn_nonconvex("clinic", question("three"), hypotheses=np.zeros((2, 2))), "hypotheses"),
    ],
)
def test_bad_input_is_named_before_anybody_is_asked(make, word):
    with pytest.raises(PrivadaError, match=word):
        make()


@pytest.mark.parametrize(("kind", "other"), [("convex", "two"), ("two", "three"), ("three", "convex")])
def test_an_owner_of_other_labels_is_charged_nothing(kind, other):
    asked = question(kind)
    held = owner(other, asked.guarantee)
    with pytest.raises(InputError, match="label|class"):
        run(LEARN[kind]("clinic", asked), {"clinic": held})
    short = question(kind, size=N - 1)
    mine = owner(kind, asked.guarantee)
    with pytest.raises(InputError, match="declared"):
        run(LEARN[kind]("clinic", short), {"clinic": mine})
    assert held.ledger.spent("target") is None
    assert mine.ledger.spent("target") is None
