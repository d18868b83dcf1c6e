"""What the questions cost: calibration, sensitivities by finite differences, refusals before any charge."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privada import Owner
from privada.audit import replay
from privada.audit.transcript import coupled
from privada.exceptions import InputError, RelationError
from privada.methods.linear.learner.trajectory import trajectory
from privada.methods.linear.owner import kernels
from privada.methods.linear.questions import losses
from privada.methods.reweighting import (
    ConvexAdaptation,
    Descent,
    Discrepancy,
    FiniteDiscrepancy,
    NonconvexAdaptation,
    Penalties,
    Selection,
    stopping_delta,
)
from privada.methods.reweighting.example import SIZE, domains, example
from privada.parties import Category, Number, Rows, Schema
from privada.parties.answering import answer_rows
from privada.privacy import ApproxDP, PureDP, Question, Unit
from privada.privacy.accounting import accountant, curves
from privada.privacy.relation import ROW

RO = {"relation": "replace-one"}
SOURCE, LABELS, TARGET, ANSWERS = domains()


def descent(**more):
    settings = {
        "size": SIZE,
        "weights": np.zeros((2, 1)),
        "intercepts": np.zeros(1),
        "transform": np.eye(2),
        "shift": np.zeros(2),
        "curvature": np.eye(2),
        "radius": 1.0,
        "threshold": 0.5,
        "alpha": 0.3,
        "steps": 5,
        "guarantee": ApproxDP(epsilon=1, delta=1e-5, **RO),
    }
    return Descent(**(settings | more))


def convex(kind=ConvexAdaptation, **more):
    settings = {
        "size": SIZE,
        "source": SOURCE,
        "source_labels": LABELS if kind is ConvexAdaptation else (LABELS > 0).astype(float),
        "penalties": Penalties(alpha=0.3, kappa2=0.1),
        "A": 1.0,
        "r": 1.0,
        "steps": 4,
        "guarantee": ApproxDP(epsilon=1, delta=1e-5, **RO),
    }
    return kind(**(settings | more))


def finite(**more):
    settings = {
        "size": SIZE,
        "weights": np.random.default_rng(0).normal(size=(3, 2, 4)),
        "intercepts": np.random.default_rng(1).normal(size=(3, 4)),
        "source_losses": np.zeros(3),
        "loss": "softmax",
        "largest_loss": 2.0,
        "guarantee": ApproxDP(epsilon=1, delta=1e-5, **RO),
    }
    return FiniteDiscrepancy(**(settings | more))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 4, 7.9, 10, 15, 20])
@pytest.mark.parametrize("delta", [1e-6, 1e-5, 0.01])
def test_every_calibration_keeps_its_guarantee(epsilon, delta):
    """privacy.md, section 4 (d): gauss_delta(ε, μ_total) <= δ for ε from 0.1 to 20, and little is wasted."""
    guarantee = ApproxDP(epsilon=epsilon, delta=delta, **RO)
    for question in (
        descent(guarantee=guarantee),
        convex(guarantee=guarantee),
        convex(NonconvexAdaptation, guarantee=guarantee),
    ):
        mu = accountant.gaussian_mu(question.price.event)
        assert 0.999 * delta <= curves.gaussian_delta(epsilon, mu) * (1 + 1e-4)
        assert curves.gaussian_delta(epsilon, mu) <= delta
        assert accountant.satisfies(question.price.event, guarantee)


@pytest.mark.parametrize(("delta", "factors"), [(0.01, (4.25, 2.98)), (1e-5, (3.24, 2.80))])
def test_less_noise_than_printed(delta, factors):
    """The table of privacy.md, section 4 (c), at ε of 1 and 4: σ₁ against the printed one at ε/2, same s₁."""
    for epsilon, factor in zip((1, 4), factors, strict=True):
        mu = curves.gaussian_mu(epsilon=epsilon, delta=delta) * math.sqrt(0.75)
        printed = 2 * math.sqrt(math.log(2 / delta)) / (epsilon / 2)
        assert printed * mu == pytest.approx(factor, abs=0.01)


def test_random_stopping_saves_what_the_specification_says():
    for epsilon, delta, factor in ((1, 1e-5, 1.15), (4, 1e-5, 1.13), (1, 0.01, 1.28)):
        mu = curves.gaussian_mu(epsilon=epsilon, delta=delta)
        low, high = 1.0, 2.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if stopping_delta(epsilon, middle * mu, 200) <= delta else (low, middle)
            )
        assert low == pytest.approx(factor, abs=0.02)


@pytest.mark.parametrize("kind", [ConvexAdaptation, NonconvexAdaptation])
def test_a_predictor_in_its_ball_is_all_that_leaves(kind, rehearsal):
    question = convex(kind)
    schema, y = (example().schema, ANSWERS) if kind is ConvexAdaptation else (CLASSES, CODES)
    rows = Rows(TARGET, schema=schema, y=y)
    payload = answer_rows(question, rows, noise=rehearsal)
    assert np.linalg.norm(payload["coef"]) <= question.A * (1 + 1e-9)
    assert set(payload) == {"coef"}


CLASSES = Schema.of_numbers(
    bounds=(-1.0, 1.0), width=2, size=SIZE, label=Category(name="label", values=("no", "yes"))
)
CODES = np.where(ANSWERS > 0, "yes", "no")


MANY = 2000


@pytest.mark.parametrize("kind", [ConvexAdaptation, NonconvexAdaptation])
@pytest.mark.parametrize("unit", [ROW, Unit(name="person", max_rows=1)])
def test_a_replaced_record_may_stand_elsewhere_in_the_file(kind, unit):
    """A file sorted by its first column: the smallest record becomes the largest, all others move up.

    With released weights this pair moved sqrt(n) coordinates by B where one was declared.
    """
    column = np.linspace(-1, 1, MANY + 1)
    X = np.column_stack([column, column[::-1]])
    y = (
        np.where(np.arange(MANY + 1) % 2, 1.0, -1.0)
        if kind is ConvexAdaptation
        else CODES[[0, 1]][np.arange(MANY + 1) % 2]
    )
    person = {} if unit == ROW else {"person_id": "id", "max_rows": 1}
    label = Number(name="y", low=-1, high=1) if kind is ConvexAdaptation else CLASSES.label
    schema = Schema.of_numbers(bounds=(-1.0, 1.0), width=2, size=MANY, label=label, **person)
    guarantee = ApproxDP(epsilon=1, delta=1e-5, unit=unit, **RO)
    pair = []
    for part in (slice(None, -1), slice(1, None)):
        people = {"person": np.arange(MANY + 1)[part], "noise": coupled(0)} if person else {}
        pair.append(Rows(X[part], schema=schema, y=y[part], **people))
    result = replay(convex(kind, size=MANY, guarantee=guarantee), *pair)
    assert result.passed, str(result)


@pytest.mark.parametrize("kind", [ConvexAdaptation, NonconvexAdaptation])
@pytest.mark.parametrize("max_rows", [None, 1, 2])
def test_weights_of_private_rows_are_not_released(kind, max_rows):
    unit = ROW if max_rows is None else Unit(name="person", max_rows=max_rows)
    guarantee = ApproxDP(epsilon=1, delta=1e-5, unit=unit, **RO)
    with pytest.raises(InputError, match="hidden to be true.*order"):
        convex(kind, hidden=False, guarantee=guarantee)
    assert set(convex(kind, guarantee=guarantee).plan.draws) == {f"gradient_{t}" for t in range(4)}


@pytest.mark.parametrize("A", [0.1, 1.0, 10.0])
def test_gradients_of_two_records_with_any_weights_are_within_the_diameter(A):
    """|f g - f' g'| <= D, on the grid too; D is well under 2G, and nearly attained."""
    asked, rng = convex(A=A), np.random.default_rng(0)
    draw = asked.plan.draws["gradient_0"]
    assert draw.sensitivity <= asked.diameter + draw.grid.step * math.sqrt(2) < 2 * asked.largest_gradient
    seen = []
    for _ in range(4000):
        w = rng.normal(size=2)
        w *= A / np.linalg.norm(w)
        angle = rng.uniform(-math.pi, math.pi, size=2)
        x = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.choice([1.0, 0.7], size=(2, 1))
        push = rng.choice([0.0, 0.4, 1.0], size=2) * 2 * (x @ w - rng.choice([-1.0, 1.0], size=2))
        sums = np.zeros((2, 2), dtype=np.int64)
        for at in range(2):
            kernels.add_weighted(sums[at], x[at : at + 1], push[at : at + 1], 1 / draw.grid.step)
        seen.append(np.linalg.norm(sums[0] - sums[1]) * draw.grid.step)
    assert 0.8 * asked.diameter < max(seen) <= draw.sensitivity


def test_persons_with_more_rows_than_the_public_size_are_chosen_from_at_random(rehearsal):
    """Were the first ones taken, whoever sorts to the end of a file would never count."""
    schema = Schema.of_numbers(
        bounds=(-1.0, 1.0),
        width=1,
        size=3,
        label=Number(name="y", low=-1, high=1),
        person_id="id",
        max_rows=2,
    )
    rows = Rows(
        np.arange(6)[:, None] / 10, schema=schema, y=np.zeros(6), person=np.arange(6) // 2, noise=rehearsal
    )
    seen = {tuple(rows.at_most(3, rehearsal).gathered().X[:, 0]) for _ in range(400)}
    assert len(seen) == 20
    assert rows.at_most(8, rehearsal).gathered().X[:, 0].tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_sensitivities_scale_with_a_persons_rows():
    person = Unit(name="person", max_rows=3)
    guarantee = ApproxDP(epsilon=1, delta=1e-5, unit=person, **RO)
    assert descent(guarantee=guarantee).reach == pytest.approx(3 * descent().reach)


def test_the_discrepancy_is_noised_for_its_guarantee_not_for_one():
    """Lap(B/n) is 1-private at every ε; ours has scale B/(nε)."""
    for epsilon in (0.25, 1.0, 4.0):
        question = Discrepancy(
            size=SIZE,
            weights=np.zeros(2),
            transform=np.eye(2),
            shift=np.zeros(2),
            source_moments=np.eye(3) / 2,
            radius=1.0,
            hypothesis_radius=1.0,
            guarantee=PureDP(epsilon=epsilon, **RO),
        )
        assert question.largest_loss == 4.0
        assert question.plan.draws["discrepancy"].scale == pytest.approx(4 / (SIZE * epsilon), rel=1e-3)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: descent(threshold=0.0), "threshold"),
        (lambda: descent(alpha=1.5), "alpha"),
        (lambda: descent(steps=0), "steps"),
        (lambda: descent(steps=10**9), "steps"),
        (lambda: descent(loss="absolute"), "loss"),
        (lambda: descent(size=0), "size"),
        (lambda: descent(transform=np.eye(3)), "transform"),
        (lambda: descent(curvature=np.eye(3)), "curvature"),
        (lambda: descent(weights=[[np.nan], [0.0]]), "weights"),
        (lambda: descent(weights=np.zeros((2, 2)), intercepts=np.zeros(2)), "one output"),
        (lambda: descent(guarantee=PureDP(epsilon=1, **RO)), "epsilon, delta"),
        (lambda: convex(penalties=Penalties(alpha=1.0)), "alpha"),
        (lambda: convex(penalties=Penalties(alpha=0.5, kappa_inf=0.1)), "kappa_inf"),
        (lambda: convex(hidden="yes"), "hidden"),
        (lambda: convex(NonconvexAdaptation, source_labels=LABELS), "0 and 1"),
        (lambda: finite(weights=np.zeros((3, 2))), "weights"),
        (lambda: finite(weights=np.zeros((3, 2, 1))), "weights"),
        (lambda: finite(weights=np.full((3, 2, 4), np.nan)), "weights"),
        (lambda: finite(intercepts=np.zeros(3)), "intercepts"),
        (lambda: finite(intercepts=np.zeros((2, 4))), "intercepts"),
        (lambda: finite(source_losses=np.zeros(2)), "source_losses"),
        (lambda: finite(loss="logistic"), "weights"),
        (
            lambda: Selection(
                weights=np.zeros((1, 2, 1)), intercepts=np.zeros((1, 1)), guarantee=PureDP(epsilon=1, **RO)
            ),
            "2 or more",
        ),
    ],
)
def test_bad_questions_are_named(make, word):
    with pytest.raises(InputError, match=word):
        make()


def test_add_remove_is_refused():
    with pytest.raises(RelationError, match="replace-one"):
        descent(guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
    with pytest.raises(RelationError, match="replace-one"):
        convex(guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))


def test_another_size_or_label_is_refused_before_any_charge():
    """n against n + 1 must raise."""
    made = example()
    owner = Owner(
        **made.data, schema=made.schema, dataset="rows", budget=ApproxDP(epsilon=9, delta=1e-5, **RO)
    )
    with pytest.raises(InputError, match="declared"):
        owner.answer(descent(size=SIZE + 1))
    with pytest.raises(InputError, match="class"):
        owner.answer(descent(loss="logistic"))
    with pytest.raises(InputError, match="features"):
        owner.answer(
            descent(weights=np.zeros((3, 1)), transform=np.eye(3), shift=np.zeros(3), curvature=np.eye(3))
        )
    assert owner.ledger.spent("rows") is None


def test_hypotheses_of_several_classes_are_scored_each_with_its_own_weights():
    """Before noise, the answer is the largest mean clipped loss: the source's losses are 0."""
    question, names = finite(), ("a", "b", "c", "d")
    schema = replace(CLASSES, label=Category(name="label", values=names))
    codes, exact = np.arange(SIZE) % 4, []
    answer_rows(
        question,
        Rows(TARGET, schema=schema, y=np.array(names)[codes]),
        noise=coupled(0),
        witness=lambda _, mechanism, value: exact.append(value[0] * mechanism.grid.step),
    )
    means = [
        np.minimum(losses.values("softmax", TARGET @ weights + intercepts, codes), 2.0).mean()
        for weights, intercepts in zip(question.weights, question.intercepts, strict=True)
    ]
    assert exact == pytest.approx([max(means)], rel=1e-5)
    assert Question.from_bytes(question.to_bytes()) == question
    with pytest.raises(InputError, match="2 classes, got 4"):
        question.fits(CLASSES)


def test_a_choice_finds_the_better_model(rehearsal):
    question = Selection(
        weights=np.array([[[0.5], [0.1]], [[0.5], [-0.4]]]),
        intercepts=np.zeros((2, 1)),
        largest_loss=0.5,
        guarantee=PureDP(epsilon=5, **RO),
    )
    rows = Rows(TARGET, schema=example().schema, y=ANSWERS)
    assert [int(answer_rows(question, rows, noise=rehearsal)["choice"][0]) for _ in range(9)] == [1] * 9


def test_clipping_does_not_change_which_model_is_fitted():
    """Rows far beyond the radius: the answer is still that of the linear model, not of clipped features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    question = Descent(
        size=400,
        weights=np.zeros((2, 1)),
        intercepts=[0.0],
        transform=np.eye(2),
        shift=np.zeros(2),
        curvature=np.eye(2),
        radius=0.3,
        threshold=0.5,
        alpha=0.0,
        steps=200,
        step_size=0.5,
        guarantee=ApproxDP(epsilon=1000, delta=1e-5, **RO),
    )
    schema = Schema.of_numbers(bounds=(-9, 9), width=2, size=400, label=Number(name="y", low=-9, high=9))
    budget = {"budget": question.guarantee, "accounting": "gaussian"}
    owner = Owner(X, y=X @ [1.0, -2.0], schema=schema, dataset="t", **budget)
    end = trajectory(question, owner.answer(question))[-1]
    assert end[:, 0] == pytest.approx([1.0, -2.0], abs=0.01)
