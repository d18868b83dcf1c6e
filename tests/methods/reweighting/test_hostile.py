"""Questions that nobody means, but that pass every check: what is told is bounded, and never fails."""

import numpy as np
import pytest

from privada.audit import replay
from privada.exceptions import InputError
from privada.methods.reweighting import (
    ConvexAdaptation,
    CorrectionMoments,
    Discrepancy,
    FiniteDiscrepancy,
    MixtureMoments,
    NonconvexAdaptation,
    Penalties,
    PublicFeatures,
    ReweightingDescent,
)
from privada.parties import Category, Number, Rows, Schema
from privada.privacy import ApproxDP

SIZE, HUGE, FAR = 40, 1e100, 1e250
CLAIM = ApproxDP(epsilon=0.1, delta=1e-6, relation="replace-one")
RNG = np.random.default_rng(0)
X = np.zeros((SIZE, 2))
NEIGHBOUR = np.vstack([[[FAR, -FAR]], X[1:]])
NUMBER = Number(name="y", low=-1, high=1)
CLASSES = {count: Category(name="y", values=("a", "b", "c")[:count]) for count in (2, 3)}


def passed(question, label, y, other=None, **more):
    """Whether the proof's steps hold between rows of zeros and the same with one record far away."""
    schema = Schema.of_numbers(bounds=(-FAR, FAR), width=2, size=SIZE, label=label)
    pair = [Rows(rows, schema=schema, y=each, **more) for rows, each in ((X, y), (NEIGHBOUR, other or y))]
    return replay(question, *pair, pair="hostile").passed


@pytest.mark.parametrize(("loss", "outputs"), [("squared", 1), ("logistic", 1), ("softmax", 3)])
@pytest.mark.parametrize("step_size", [1.0, 1e300])
@pytest.mark.parametrize("models", [False, True])
def test_a_descent_that_overflows(loss, outputs, step_size, models):
    offset = {}
    if models:
        several = {"starts": np.zeros(2 * outputs), "trees": np.array([[0, outputs]])}
        link = "identity" if loss == "squared" else "log-odds"
        offset = {
            "models": huge(link, outputs, **several),
            "model_weights": np.full((2 * outputs, outputs), HUGE),
        }
    question = ReweightingDescent(
        size=SIZE,
        loss=loss,
        outputs=outputs,
        centre=np.zeros(2),
        spread=np.array([1e-100, 1.0]),
        limit=HUGE,
        constant=1.0,
        transform=HUGE * np.array([[0.0, 0.0], [0.5, 1.0], [0.25, 0.5]]),
        intercepts=HUGE * np.arange(outputs) / outputs,
        bound=1.0,
        steps=3,
        **offset,
        step_size=step_size,
        guarantee=CLAIM,
    )
    label = NUMBER if loss == "squared" else CLASSES[3 if loss == "softmax" else 2]
    assert passed(question, label, [0.0] * SIZE if loss == "squared" else ["a"] * SIZE)


def huge(link="identity", outputs=1, **more):
    """Public features whose every number overflows somewhere."""
    settings = {
        "mean": np.zeros(2),
        "spread": np.array([1e-100, 1.0]),
        "limit": HUGE,
        "weights": HUGE * np.ones((2, outputs)),
        "starts": np.zeros(2 * outputs),
        "splits": np.array([[0, 1, 2], [-1, 0, 0], [-1, 0, 0]]),
        "cuts": np.array([0.0, HUGE, -HUGE]),
        "trees": np.array([[0, outputs]]),
        "landmarks": np.zeros((1, 2)),
        "loads": HUGE * np.ones((1, outputs)),
        "bandwidth": HUGE,
        "reach": np.full(2, HUGE),
        "link": link,
    }
    return PublicFeatures(**(settings | more))


@pytest.mark.parametrize(("link", "outputs"), [("identity", 1), ("probability", 1), ("probability", 3)])
def test_moments_of_features_that_overflow(link, outputs):
    features = huge(link, outputs)
    common = {
        "size": SIZE,
        "features": features,
        "weights": HUGE * np.ones((features.width, outputs)),
        "intercepts": np.zeros(outputs),
        "radius": 2.0,
        "clip": 1.5,
        "guarantee": CLAIM,
    }
    directions = HUGE * np.ones((3, 2 * outputs + 1, outputs))
    transform = HUGE * np.ones((features.width, 2))
    label = NUMBER if link == "identity" else CLASSES[3 if outputs == 3 else 2]
    y = [0.0] * SIZE if link == "identity" else ["a"] * SIZE
    assert passed(MixtureMoments(directions=directions, **common), label, y)
    assert passed(CorrectionMoments(transform=transform, shift=np.zeros(2), **common), label, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"splits": np.array([[0, 0, 2], [-1, 0, 0], [-1, 0, 0]])}, "below its parent"),
        ({"splits": np.array([[0, 1, 3], [-1, 0, 0], [-1, 0, 0]])}, "below its parent"),
        ({"splits": np.array([[2, 1, 2], [-1, 0, 0], [-1, 0, 0]])}, "columns that exist"),
        ({"trees": np.array([[0, 2]])}, "scores that exist"),
        ({"trees": np.array([[0, -1]])}, "exist"),
        ({"trees": np.array([[0, 1], [0, 1]])}, "one tree after the other"),
        ({"trees": np.array([[1, 1]])}, "one tree after the other"),
        ({"trees": np.array([[0.0, 1.0]])}, "integers"),
        ({"spread": np.array([0.0, 1.0])}, "spread"),
        ({"starts": np.zeros(3)}, "start for every output"),
        ({"low": 1.0, "high": 1.0}, "low < high"),
        ({"loads": np.zeros((2, 1))}, "loads for each"),
    ],
)
def test_models_that_would_never_end_or_read_elsewhere_are_refused(change, message):
    """Walks end because children stand below their parents; every index is within its table."""
    with pytest.raises(InputError, match=message):
        huge(**change)


@pytest.mark.parametrize("kind", [ConvexAdaptation, NonconvexAdaptation])
@pytest.mark.parametrize("step_scale", [1e200, 1e308])
def test_weights_that_overflow(kind, step_scale):
    """A row whose loss passes κ₁ moves its weight to infinity; the others stay."""
    convex = kind is ConvexAdaptation
    question = kind(
        size=SIZE,
        source=RNG.uniform(-0.5, 0.5, size=(20, 2)),
        source_labels=np.zeros(20),
        penalties=Penalties(alpha=0.3, kappa1=0.9 if convex else 0.69),
        A=1e-3,
        steps=4,
        step_scale=step_scale,
        guarantee=CLAIM,
    )
    y = [0.0] * SIZE if convex else ["a"] * SIZE
    assert passed(question, NUMBER if convex else CLASSES[2], y, [1.0, *y[1:]] if convex else ["b", *y[1:]])


def test_scores_that_overflow_say_nothing():
    """Sums of huge weights are not numbers for some records only."""
    weights = HUGE * np.array([[1.0, 1.0], [1.0, 0.5]])
    finite = FiniteDiscrepancy(
        size=SIZE, weights=weights, intercepts=np.zeros(2), source_losses=np.zeros(2), guarantee=CLAIM
    )
    assert passed(finite, CLASSES[2], ["a"] * SIZE)


def far(**more):
    settings = {
        "size": SIZE,
        "weights": HUGE * np.ones(2),
        "transform": HUGE * np.eye(2),
        "shift": np.zeros(2),
        "source_moments": np.zeros((3, 3)),
        "radius": 1e-7,
        "label_bound": 1.0,
        "hypothesis_radius": 1e7,
        "guarantee": CLAIM,
    }
    return Discrepancy(**(settings | more))


def test_a_discrepancy_of_rows_that_overflow():
    assert passed(far(), NUMBER, [0.5] * SIZE)


def test_moments_that_no_clipped_rows_have_are_refused():
    """Block by block: the features' may be tiny where the label's are not."""
    for at in ((0, 0), (0, 2), (2, 0)):
        moments = np.zeros((3, 3))
        moments[at] = 0.5
        with pytest.raises(InputError, match="source_moments"):
            far(source_moments=moments)
    moments = np.zeros((3, 3))
    moments[2, 2] = 0.5
    assert far(source_moments=moments).largest_loss == pytest.approx(4.0)


@pytest.mark.parametrize("value", [-0.1, 2.0, 1e15])
def test_losses_that_no_source_has_are_refused(value):
    """Far enough from 0 a grid ends, and one record would decide whether an answer passes its end."""
    with pytest.raises(InputError, match="source_losses"):
        FiniteDiscrepancy(
            size=SIZE, weights=np.ones((1, 2)), intercepts=[0.0], source_losses=[value], guarantee=CLAIM
        )
