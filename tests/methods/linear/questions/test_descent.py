"""What the questions cost: calibration, sensitivities by finite differences, refusals before any charge."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privada import Owner
from privada.audit import replay
from privada.audit.transcript import coupled
from privada.exceptions import InputError, RelationError
from privada.methods.linear.learner import follow_path
from privada.methods.linear.owner import add_weighted
from privada.methods.linear.questions import losses
from privada.methods.reweighting import (
    ConvexAdaptation,
    Discrepancy,
    FiniteDiscrepancy,
    NonconvexAdaptation,
    Penalties,
    ReweightingDescent,
    stopping_delta,
)
from privada.methods.reweighting.example import SIZE, domains, example
from privada.methods.reweighting.learner.public_models import fit_source
from privada.parties import Category, Number, Rows, Schema
from privada.parties.answering import answer_rows
from privada.privacy import ZCDP, ApproxDP, PureDP, Question, Unit
from privada.privacy.accounting import accountant, curves
from privada.privacy.relation import ROW

RO = {"relation": "replace-one"}
SOURCE, LABELS, TARGET, ANSWERS = domains()
MODELS = fit_source(SOURCE, LABELS, n_classes=0, limits=None, base="linear").features


def descent(**more):
    settings = {
        "size": SIZE,
        "loss": "squared",
        "centre": np.zeros(2),
        "spread": np.ones(2),
        "limit": 1.0,
        "constant": 0.3,
        "bound": 0.5,
        "steps": 5,
        "step_size": 0.1,
        "guarantee": ApproxDP(epsilon=1, delta=1e-5, **RO),
    }
    return ReweightingDescent(**(settings | more))


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
            add_weighted(sums[at], x[at : at + 1], push[at : at + 1], 1 / draw.grid.step)
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


@pytest.mark.parametrize(("relation", "moved"), [("add/remove", 1), ("replace-one", 2)])
@pytest.mark.parametrize("rows", [None, 1, 3])
def test_the_noise_of_a_descent_follows_relation_and_unit(relation, moved, rows):
    person = {} if rows is None else {"unit": Unit(name="person", max_rows=rows)}
    guarantee = ZCDP(rho=0.5, relation=relation, **person)  # μ = 1, so 1/2 for each of four steps
    question = descent(steps=4, guarantee=guarantee)
    assert question.reach == moved * (rows or 1) * 0.5
    assert question.plan.draws["gradient_3"].scale == pytest.approx(2 * question.reach, rel=1e-6)


def test_columns_are_held_to_the_limit_and_overflow_to_a_number():
    question = descent(centre=np.zeros(2), spread=np.array([2.0, 2e6]), limit=1.5)
    columns = question.columns(np.array([[1.0, 2e6], [-9.0, 1e308], [np.nan, -np.inf]]))
    assert columns.tolist() == [[0.3, 0.5, 1.0], [0.3, -1.5, 1.5], [0.3, 0.0, -1.5]]


@pytest.mark.parametrize(
    ("more", "label", "width", "message"),
    [
        ({}, Number(name="y", low=0, high=9), 3, "Expected 3 features"),
        ({}, Category(name="y", values=(0, 1)), 2, "numeric label"),
        ({"loss": "logistic"}, Number(name="y", low=0, high=9), 2, "declare one as a Category"),
        ({"loss": "logistic"}, Category(name="y", values=(0, 1, 2)), 2, "2 classes"),
        ({"loss": "softmax", "outputs": 2}, Category(name="y", values=(0, 1, 2)), 2, "outputs for 3 classes"),
    ],
)
def test_another_schema_is_refused(more, label, width, message):
    with pytest.raises(InputError, match=message):
        descent(**more).fits(Schema.of_numbers(bounds=(0.0, 1.0), width=width, label=label))


def test_where_the_number_of_rows_is_private_the_size_is_announced():
    """It scales the steps and moves no sum, so nothing is compared with it."""
    schema = replace(CLASSES, label=Number(name="y", low=0, high=9), size=None)
    descent(size=7, guarantee=ZCDP(rho=0.5, relation="add/remove")).fits(schema)


@pytest.mark.parametrize("models", [False, True])
def test_a_file_is_the_same_question(models):
    more = {"models": MODELS, "model_weights": np.ones((1, 1))} if models else {}
    question = descent(transform=np.ones((3, 2)), intercepts=[0.5], **more)
    again = Question.from_bytes(question.to_bytes())
    assert again == question
    assert again.parts()[0] == question.parts()[0]


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
        (lambda: descent(loss="logistic", threshold=0.0), "threshold"),
        (lambda: descent(threshold=0.5), "no threshold for squared loss"),
        (lambda: descent(bound=0.0), "bound"),
        (lambda: descent(spread=np.array([1.0, 0.0])), "spread to be positive"),
        (lambda: descent(spread=np.ones(3)), "spread to be a vector of length 2"),
        (lambda: descent(limit=0.0), "limit"),
        (lambda: descent(unit=np.nan), "unit"),
        (lambda: descent(constant=-1.0), "constant"),
        (lambda: descent(decay=-0.1), "decay"),
        (lambda: descent(momentum=1.0), "momentum"),
        (lambda: descent(steps=0), "steps"),
        (lambda: descent(steps=10**9), "steps"),
        (lambda: descent(loss="absolute"), "loss"),
        (lambda: descent(size=0), "size"),
        (lambda: descent(transform=np.eye(4)), "transform of 3 rows"),
        (lambda: descent(intercepts=np.zeros(2)), "intercepts"),
        (lambda: descent(model_weights=np.ones((1, 1))), "models and model_weights"),
        (lambda: descent(models=MODELS), "models and model_weights"),
        (lambda: descent(models=MODELS, model_weights=np.ones((2, 1))), "model_weights of 1 rows"),
        (lambda: descent(models=[0.5], model_weights=np.ones((1, 1))), "PublicFeatures"),
        (
            lambda: descent(
                centre=np.zeros(3), spread=np.ones(3), models=MODELS, model_weights=np.ones((1, 1))
            ),
            "models of 3 features",
        ),
        (lambda: descent(centre=[np.nan, 0.0]), "centre"),
        (lambda: descent(outputs=2), "one output"),
        (lambda: descent(loss="softmax"), "outputs of at least 2"),
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
    ],
)
def test_bad_questions_are_named(make, word):
    with pytest.raises(InputError, match=word):
        make()


def test_add_remove_is_refused_where_the_size_divides_what_is_released():
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
        owner.answer(descent(centre=np.zeros(3), spread=np.ones(3)))
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


def test_clipping_does_not_change_which_model_is_fitted():
    """Rows far beyond the radius: the answer is still that of the linear model, not of clipped features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    question = descent(
        size=400,
        limit=9.0,
        transform=np.eye(3)[:, 1:],
        bound=0.15,
        steps=200,
        step_size=0.5,
        guarantee=ApproxDP(epsilon=1000, delta=1e-5, **RO),
    )
    schema = Schema.of_numbers(bounds=(-9, 9), width=2, size=400, label=Number(name="y", low=-9, high=9))
    budget = {"budget": question.guarantee, "accounting": "gaussian"}
    owner = Owner(X, y=X @ [1.0, -2.0], schema=schema, dataset="t", **budget)
    end = follow_path(question, owner.answer(question))[-1]
    assert end[:, 0] == pytest.approx([1.0, -2.0], abs=0.01)
