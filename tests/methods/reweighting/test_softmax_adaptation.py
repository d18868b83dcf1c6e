"""PNCnvxAdap for more than two classes: its bounds, its gradient, what it learns, and what it refuses."""

import math

import numpy as np
import pytest

from privada import Owner
from privada.audit import replay
from privada.exceptions import InputError, WireError
from privada.methods.linear.owner import add_outer
from privada.methods.linear.questions import losses
from privada.methods.reweighting import NonconvexAdaptation, Penalties
from privada.methods.reweighting.example import SIZE, domains
from privada.methods.reweighting.owner.adaptation import _Side
from privada.parties import Category, Rows, Schema
from privada.parties.answering import answer_rows
from privada.privacy import ApproxDP, Question, Rehearsal, wire

RO = {"relation": "replace-one"}
CORNERS = np.array([[1.0, 0.0], [-0.5, 0.866], [-0.5, -0.866]])
NAMES = np.array(["a", "b", "c", "d", "e"])
N = 400


def drawn(n, turn, seed):
    """Three clouds at the corners of a triangle, turned."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    cos, sin = np.cos(turn), np.sin(turn)
    X = 0.6 * CORNERS[y] @ np.array([[cos, sin], [-sin, cos]]) + 0.15 * rng.normal(size=(n, 2))
    return X, y


SOURCE, CODES = drawn(200, 0.0, 0)
TARGET, ANSWERS = drawn(N, 0.9, 1)


def schema(classes=3, size=N):
    label = Category(name="label", values=tuple(NAMES[:classes].tolist()))
    return Schema.of_numbers(bounds=(-2.0, 2.0), width=2, size=size, label=label)


def question(**more):
    settings = {
        "size": N,
        "source": SOURCE,
        "source_labels": CODES,
        "n_classes": 3,
        "penalties": Penalties(alpha=0.2, kappa2=0.1),
        "A": 1.0,
        "r": 1.0,
        "steps": 5,
        "guarantee": ApproxDP(epsilon=1, delta=1e-5, **RO),
    }
    return NonconvexAdaptation(**(settings | more))


def points(rng, asked, near):
    """Weights and two records, random or at the ends of what is allowed."""
    K = asked.n_classes
    W = rng.normal(size=(2, K))
    x = rng.normal(size=2)
    z = -x if near else rng.normal(size=2)
    if near:  # two records of one label on both sides of a boundary, as far as the weights can tell
        W = np.outer([x[1], -x[0]], np.eye(K)[0] - np.eye(K)[1]) + 0.1 * W
        z = z + rng.uniform(0, 2) * np.array([x[1], -x[0]])
    sizes = np.linalg.norm(W), np.linalg.norm(x), np.linalg.norm(z)
    y = (1, 1) if near else tuple(rng.integers(K, size=2))
    return W * asked.A / sizes[0], x * asked.r / sizes[1], z * asked.r / sizes[2], y


def contribution(asked, W, x, y, factor=1.0, per_step=2.0**24):
    """What an owner adds for one record, in grid steps."""
    side = _Side(x[None], np.array([float(y)]), "softmax", asked.largest_loss)
    loss, push = side.look(W)
    sums = np.zeros(asked.shape, dtype=np.int64)
    add_outer(sums, side.X, push, np.array([factor]), asked.largest_gradient, per_step)
    return sums, loss[0]


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("A", [0.1, 1.0, 4.0, 30.0])
def test_no_two_records_differ_by_more_than_the_diameter(n_classes, A):
    """Gradients, losses and hidden factors, at random points and at the ends of their ranges."""
    asked, rng, seen = question(n_classes=n_classes, A=A, r=0.5), np.random.default_rng(0), []
    for trial in range(1500):
        W, x, z, y = points(rng, asked, near=trial % 2)
        factors = rng.choice([0.0, 0.3, 1.0], size=2)
        for f, g in ((1.0, 1.0), factors):
            one, loss = contribution(asked, W, x, y[0], f)
            other, _ = contribution(asked, W, z, y[1], g)
            assert np.linalg.norm(one) <= asked.largest_gradient * 2.0**24
            seen.append(np.linalg.norm(one - other))
            assert 0 <= loss <= asked.largest_loss
    slack = math.sqrt(2 * n_classes)
    assert max(seen) <= asked.diameter * 2.0**24 + slack
    assert max(seen) > 0.65 * asked.diameter * 2.0**24


def test_the_bounds_are_those_of_the_proof():
    asked = question(A=2.0, r=0.5)
    assert asked.largest_loss == pytest.approx(math.log(1 + 2 * math.exp(math.sqrt(2))))
    assert asked.largest_gradient == pytest.approx(math.sqrt(0.5) * (1 - math.exp(-asked.largest_loss)))
    assert asked.diameter == pytest.approx(2 * 0.5 * math.sqrt(2 / 3) + 2 * 0.25 / 2)
    assert question(A=50.0).diameter == pytest.approx(2 * math.sqrt(2))
    draw = asked.plan.draws["gradient_0"]
    assert draw.sensitivity == pytest.approx(asked.diameter + draw.grid.step * math.sqrt(6), rel=1e-12)


@pytest.mark.parametrize("push", [[np.nan] * 3, [np.inf, 0.0, -1.0], [1e300, -1e300, 0.0]])
@pytest.mark.parametrize("factor", [1.0, np.nan, 2.0, -1.0])
def test_a_contribution_is_bounded_whatever_the_record_pushes(push, factor):
    sums = np.zeros((2, 3), dtype=np.int64)
    add_outer(sums, np.array([[0.6, 0.8]]), np.array([push]), np.array([factor]), 1.4, 2.0**20)
    assert np.linalg.norm(sums) <= 1.4 * 2.0**20


@pytest.mark.parametrize("A", [0.1, 1.0])
def test_a_replay_of_opposite_records_uses_most_of_the_bound(A):
    """A record at the edge of the ball and its opposite, of one label; and one whose label turns round."""
    asked = question(size=1, A=A, guarantee=ApproxDP(epsilon=8, delta=1e-5, **RO))
    one = schema(size=1)
    sides = [Rows(np.array([[x, 0.0]]), schema=one, y=np.array(["a"])) for x in (2.0, -2.0)]
    result = replay(asked, *sides)
    assert result.passed, str(result)
    assert max(check.share for check in result.draws if check.name == "gradient_0") > 0.75
    sides = [Rows(np.array([[2.0, 0.0]]), schema=one, y=np.array([y])) for y in "ab"]
    assert replay(asked, *sides).passed


def test_the_gradient_is_that_of_the_loss():
    """By central differences, at a record and weights inside all bounds."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        W, x, y = 0.3 * rng.normal(size=(4, 5)), 0.4 * rng.normal(size=4), rng.integers(5)
        _, push = _Side(x[None], np.array([float(y)]), "softmax", 10.0).look(W)
        found = np.zeros_like(W)
        for at in np.ndindex(*W.shape):
            ends = []
            for sign in (1, -1):
                moved = W.copy()
                moved[at] += sign * 1e-6
                ends.append(losses.values("softmax", x[None] @ moved, np.array([y]))[0])
            found[at] = (ends[0] - ends[1]) / 2e-6
        assert np.outer(x, push[0]) == pytest.approx(found, abs=1e-8)


TWO = ("92a40f14539fea90", 14.922526554186769, [0.12508042988666554, -0.07582728490865623])


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_two_classes_are_asked_and_answered_as_before():
    """File form, noise and answer are those of the logistic question without a number of classes."""
    source, labels, target, answers = domains()
    asked = NonconvexAdaptation(
        size=SIZE,
        source=source,
        source_labels=(labels > 0).astype(float),
        penalties=Penalties(alpha=0.3, kappa2=0.1),
        A=1.0,
        steps=4,
        guarantee=ApproxDP(epsilon=1, delta=1e-5, **RO),
    )
    rows = Rows(target, schema=schema(2, SIZE), y=np.where(answers > 0, "b", "a"))
    payload = answer_rows(asked, rows, noise=Rehearsal(0))
    digest, scale, coef = TWO
    assert asked.digest.startswith(digest)
    assert "n_classes" not in asked.header()["parameters"]
    assert asked.plan.draws["gradient_0"].scale == pytest.approx(scale, rel=1e-12)
    assert payload["coef"] == pytest.approx(coef, rel=1e-9)
    said = asked.header()
    said["parameters"]["n_classes"] = 2
    with pytest.raises(WireError, match="more than the question says"):
        Question.from_bytes(wire.pack("question", said, asked.parts()[1]))


def test_a_turned_target_is_learned_better_than_from_its_source(rehearsal):
    """Of three classes, by an iterate of a random step; the source's own minimiser has 0.74."""
    from sklearn.linear_model import LogisticRegression

    asked = question(A=4.0, steps=60, guarantee=ApproxDP(epsilon=20, delta=1e-5, **RO))
    rows = Rows(TARGET, schema=schema(), y=NAMES[ANSWERS])
    coef = answer_rows(asked, rows, noise=rehearsal)["coef"]
    X, y = drawn(1000, 0.9, 2)
    alone = LogisticRegression(fit_intercept=False).fit(SOURCE, CODES).score(X, y)
    assert coef.shape == (2, 3)
    assert np.linalg.norm(coef) <= 4.0 * (1 + 1e-9)
    assert ((X @ coef).argmax(axis=1) == y).mean() > max(0.95, alone + 0.15)


def test_the_file_form_comes_back():
    asked = question()
    read = Question.from_bytes(asked.to_bytes())
    assert read == asked
    assert read.n_classes == 3
    assert read.plan.draws["gradient_0"] == asked.plan.draws["gradient_0"]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"source_labels": np.full(200, 3.0)}, "0 to 2"),
        ({"source_labels": np.full(200, -1.0)}, "0 to 2"),
        ({"source_labels": np.full(200, 0.5)}, "0 to 2"),
        ({"n_classes": 2}, "0 and 1"),
        ({"n_classes": 1}, "n_classes"),
        ({"n_classes": True}, "n_classes"),
        ({"n_classes": 3.0}, "n_classes"),
        ({"n_classes": 10**9}, "numbers"),
    ],
)
def test_wrong_codes_and_numbers_of_classes_are_named(more, word):
    with pytest.raises(InputError, match=word):
        question(**more)


@pytest.mark.parametrize("classes", [2, 4])
def test_another_number_of_classes_is_refused_before_any_charge(classes):
    """An owner of two or of four classes is not asked about three."""
    y = NAMES[ANSWERS % classes]
    budget = ApproxDP(epsilon=9, delta=1e-5, **RO)
    owner = Owner(TARGET, y=y, schema=schema(classes), dataset="rows", budget=budget)
    with pytest.raises(InputError, match=f"3 classes, the schema has {classes}"):
        owner.answer(question())
    assert owner.ledger.spent("rows") is None
