"""The paper's own algorithms on a pair: sound, as an owner answers them, and as printed, with seeded noise.

Settings are the same for both and do not depend on the pair: α, κ₁, radius, steps. The sound ones release no
private weight and get the whole budget's μ; their step size is line 4's times `FASTER`, for classes 1/β̄ of
Algorithm 2. Printed ones claim (ε, δ) with ε/2 for the discrepancy and ε/2 for the descent, as the text says.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from privada import Owner
from privada._arrays import FloatArray
from privada.exceptions import PrivadaWarning
from privada.methods.linear.questions import public
from privada.methods.reweighting.learner.adaptation import SHARE, learn_convex, learn_nonconvex
from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
from privada.methods.reweighting.questions.discrepancy import Discrepancy
from privada.methods.reweighting.questions.problem import Bounds, Penalties
from privada.methods.reweighting.questions.supremum import moments
from privada.parties import Category, Number, Schema
from privada.parties.protocol import AskOwner, Learner, only_releases
from privada.parties.running import run
from privada.privacy import ApproxDP
from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import Relation
from privada.privacy.release import Release
from privada_lab.baselines.cnvx_adap import cnvx_adap
from privada_lab.datasets.domain_pairs import DomainPair, Part
from privada_lab.experiments.reweighting.contenders import DELTA, NORM, error, with_constant
from privada_lab.papers.nonconvex import paper_pncnvxadap, smoothness
from privada_lab.papers.reweighting import paper_discrepancy, paper_pcnvxadap

ALPHA, KAPPA, STEPS = 0.1, 1.0, 100
RADII = {False: 5.0, True: 20.0}  # of predictors, by whether classes are predicted
FASTER = 10.0  # times the step size of line 4, which is made for the worst case


def _guarantee(epsilon: float) -> ApproxDP:
    return ApproxDP(epsilon=epsilon, delta=DELTA, relation=Relation.REPLACE_ONE)


def _owner(private: Part, classes: int, budget: ApproxDP) -> Owner:
    X = with_constant(private.X)
    label = (
        Category(name="y", values=tuple(range(classes))) if classes else Number(name="y", low=-1.0, high=1.0)
    )
    schema = Schema.of_numbers(bounds=(-1, 1), width=X.shape[1], size=len(X), label=label)
    y = private.y if classes else np.clip(private.y, -1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        return Owner(X, y=y, schema=schema, dataset="target", budget=budget, accounting="gaussian")


def sound(pair: DomainPair, epsilon: float, train: Part | None = None, *, alpha: float = ALPHA) -> float:
    """Test error of PCnvxAdap or PNCnvxAdap as an owner answers it, discrepancy included."""
    private, whole = pair.train if train is None else train, _guarantee(epsilon)
    if alpha == 1:
        return unsupervised(pair, epsilon, private, labelled=True)
    owner, radius = _owner(private, pair.classes, whole), RADII[bool(pair.classes)]
    kind = NonconvexAdaptation if pair.classes else ConvexAdaptation
    question = kind(
        size=len(private),
        source=with_constant(pair.source.X),
        source_labels=pair.source.y.astype(np.float64),
        penalties=Penalties(alpha=alpha, kappa1=KAPPA),
        A=radius,
        r=NORM,
        steps=STEPS,
        step_scale=FASTER,
        guarantee=whole,
    )
    if isinstance(question, NonconvexAdaptation):
        question = replace(question, step_scale=step_for_smoothness(question))
    learn = learn_nonconvex if pair.classes else learn_convex
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        found = run(learn("target", question), {"target": owner})  # type: ignore[arg-type]
    return _error(pair, found.coef)


def printed(
    pair: DomainPair,
    epsilon: float,
    train: Part | None = None,
    *,
    alpha: float = ALPHA,
    seed: int = 0,
) -> float:
    """Test error of the printed algorithm, at the paper's δ = 0.01: not private as claimed."""
    private, radius = pair.train if train is None else train, RADII[bool(pair.classes)]
    rows = with_constant(pair.source.X), pair.source.y, with_constant(private.X), private.y
    if pair.classes:
        penalties = Penalties(alpha=alpha, kappa1=KAPPA)
        settings = {"epsilon": epsilon / 2, "delta": 0.01, "steps": STEPS, "insecure_seed": seed}
        model = paper_pncnvxadap(*rows, penalties=penalties, A=radius, r=NORM, **settings)  # type: ignore[arg-type]
        return _error(pair, model.coef)
    bounds = Bounds(A=radius, r=NORM)
    gap = paper_discrepancy(*rows, bounds=bounds, insecure_seed=seed)
    penalties = Penalties(alpha=alpha, kappa1=KAPPA, discrepancy=gap)
    found = paper_pcnvxadap(
        *rows,
        epsilon=epsilon / 2,
        delta=0.01,
        penalties=penalties,
        bounds=bounds,
        steps=STEPS,
        insecure_seed=seed + 1_000_003,
    )
    return _error(pair, found.coef)


def unsupervised(
    pair: DomainPair, epsilon: float, train: Part | None = None, *, labelled: bool = False
) -> float:
    """Test error of CnvxAdap at α = 1, regression: of the private rows only a discrepancy is asked for.

    Unlabelled, it is the extension that the paper names: no private label is used. What weighs public rows is
    the released discrepancy; the descent is public, and solved exactly.
    """
    private, radius = pair.train if train is None else train, RADII[False]
    whole = _guarantee(epsilon)
    gap = _asked(pair, private, whole, whole, labelled=labelled)
    S, none = with_constant(pair.source.X), np.zeros((1, pair.source.X.shape[1] + 1))
    penalties = Penalties(alpha=1.0, kappa1=KAPPA, discrepancy=gap)
    found = cnvx_adap(S, np.clip(pair.source.y, -1, 1), none, [0.0], radius=radius, penalties=penalties)
    return _error(pair, found.coef)


def weakly_supervised(pair: DomainPair, epsilon: float, *, labels: int) -> float:
    """Test error where only the first ``labels`` private rows have labels, regression.

    The unlabelled discrepancy of all private rows gets 5 % of μ², the descent on the labelled ones the rest:
    a row in both is charged for both.
    """
    whole = _guarantee(epsilon)
    share, rest = public.shares(whole, SHARE)
    assert share is not None
    few = Part(pair.train.X[:labels], pair.train.y[:labels])
    question = ConvexAdaptation(
        size=len(few),
        source=with_constant(pair.source.X),
        source_labels=pair.source.y.astype(np.float64),
        penalties=Penalties(
            alpha=ALPHA, kappa1=KAPPA, discrepancy=_asked(pair, pair.train, whole, share, labelled=False)
        ),
        A=RADII[False],
        r=NORM,
        steps=STEPS,
        step_scale=FASTER,
        guarantee=rest,
    )
    return _error(pair, _answer(_owner(few, 0, whole), question)["coef"])


def _asked(
    pair: DomainPair, private: Part, budget: ApproxDP, guarantee: Guarantee, *, labelled: bool
) -> float:
    """The released discrepancy, in [0, B]."""
    S, radius = with_constant(pair.source.X), RADII[False]
    question = Discrepancy(
        size=len(private),
        weights=np.zeros(S.shape[1]),
        transform=np.eye(S.shape[1]),
        shift=np.zeros(S.shape[1]),
        source_moments=moments(S, np.clip(pair.source.y, -1, 1)),
        radius=NORM,
        hypothesis_radius=radius,
        labelled=labelled,
        guarantee=guarantee,
    )
    told = _answer(_owner(private, 0, budget), question)
    return float(np.clip(told["discrepancy"][0], 0.0, question.largest_loss))


def _answer(owner: Owner, question: ConvexAdaptation | Discrepancy) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        found: Release = run(_asking(question), {"target": owner})
    return found


def _asking(question: ConvexAdaptation | Discrepancy) -> Learner[Release]:
    release: Release = yield AskOwner("target", question)
    only_releases(release)
    return release


def _error(pair: DomainPair, coef: FloatArray) -> float:
    scores = with_constant(pair.test.X) @ coef
    return error(pair, (scores > 0).astype(np.int64) if pair.classes else scores)


def step_for_smoothness(question: NonconvexAdaptation) -> float:
    """The ``step_scale`` at which w's step is 1/β̄, Algorithm 2's."""
    penalties, n = question.penalties, question.size
    beta = smoothness(penalties, m=len(question.source), n=n, A=question.A, r=question.r)
    left = (1 - penalties.alpha) / n
    deviation = left * question.plan.lattice("gradient_0").scale * math.sqrt(math.prod(question.shape))
    line_4 = question.A / math.sqrt(question.steps * (question.largest_gradient**2 + deviation**2))
    return 1 / (beta * line_4)


__all__ = ["ALPHA", "STEPS", "printed", "sound", "step_for_smoothness", "unsupervised", "weakly_supervised"]
