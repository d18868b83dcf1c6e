"""Per-example clipping of torch modules: gradients, the wire, the proof's arithmetic, refusals."""

from dataclasses import replace

import numpy as np
import pytest

from privada import Owner
from privada.exceptions import InputError, RelationError, WireError
from privada.methods.reweighting import ModuleAdaptation, Penalties
from privada.methods.reweighting.questions import network
from privada.parties import Category, Number, Rows, Schema
from privada.parties.answering import answer_rows
from privada.privacy import ApproxDP, PureDP, Question, Unit
from privada.privacy.accounting import accountant

torch = pytest.importorskip("torch")

from privada.methods.reweighting.owner import module_steps  # noqa: E402
from privada.methods.reweighting.questions.network import Gradients  # noqa: E402

N, WIDTH = 30, 4
RNG = np.random.default_rng(0)
SOURCE, TARGET = RNG.normal(size=(20, WIDTH)), np.clip(RNG.normal(size=(N, WIDTH)), -2, 2)
CODES, ANSWERS = (SOURCE[:, 0] > 0).astype(float), np.where(TARGET[:, 1] > 0, "b", "a")
SCHEMA = Schema.of_numbers(
    bounds=(-2.0, 2.0), width=WIDTH, size=N, label=Category(name="label", values=("a", "b"))
)
NUMERIC = replace(SCHEMA, label=Number(name="label", low=-2.0, high=2.0))
CLAIM = ApproxDP(epsilon=2.0, delta=1e-5, relation="replace-one")


def perceptron(outputs=2):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 6), torch.nn.GELU(), torch.nn.LayerNorm(6), torch.nn.Linear(6, outputs)
    )


def convolution():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 2, 2)),
        torch.nn.Conv2d(1, 3, 2, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(3, 2),
    )


class Gated(torch.nn.Module):
    """No list of layers."""

    def __init__(self):
        super().__init__()
        self.gate, self.score = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 2)

    def forward(self, x):
        return self.score(x * torch.sigmoid(self.gate(x)))


def asked(module=None, **more):
    module = perceptron() if module is None else module
    settings = {
        "size": N,
        "network": {"layers": network.declare(module)} if "network" not in more else more["network"],
        "start": network.flat(module),
        "source": SOURCE,
        "source_labels": CODES,
        "mean": np.zeros(WIDTH),
        "scale": np.ones(WIDTH),
        "penalties": Penalties(alpha=0.3, kappa2=0.1),
        "clip": 0.5,
        "A": 3.0,
        "steps": 4,
        "guarantee": CLAIM,
    }
    return ModuleAdaptation(**(settings | more))


def house(question, schema=SCHEMA, y=ANSWERS):
    return Owner(TARGET, y=y, schema=schema, dataset="rows", budget=question.guarantee, accounting="gaussian")


@pytest.mark.parametrize("make", [perceptron, convolution], ids=["perceptron", "convolution"])
def test_a_declared_network_is_the_same_network(make):
    module = make()
    built = network.build(network.declare(module), width=WIDTH)
    assert repr(built) == repr(module)
    assert len(network.flat(built)) == len(network.flat(module))
    rows = torch.randn(5, WIDTH, dtype=torch.float64)
    here = torch.func.functional_call(built, network.shaped(built, network.flat(module)), (rows,))
    assert torch.allclose(here, module.double()(rows))


@pytest.mark.parametrize("make", [perceptron, convolution, Gated], ids=["perceptron", "conv", "gated"])
def test_rows_have_the_gradients_that_autograd_gives_one_by_one(make):
    module = make().double().eval()
    y = (TARGET[:, 1] > 0).astype(float)
    found = np.concatenate([g for _, _, g in _gradients(module, TARGET, y).blocks(network.flat(module))])
    for i in range(N):
        module.zero_grad()
        value = torch.nn.functional.cross_entropy(
            module(torch.from_numpy(TARGET[i : i + 1])), torch.tensor([int(y[i])])
        )
        value.backward()
        alone = np.concatenate([p.grad.numpy().ravel() for p in module.parameters()])
        assert found[i] == pytest.approx(alone, abs=1e-12)


def _gradients(module, X, y):
    return Gradients(module, "cross-entropy", X, y)


@pytest.mark.parametrize("make", [perceptron, convolution, Gated], ids=["perceptron", "conv", "gated"])
def test_a_rows_gradient_is_the_same_to_the_bit_whatever_its_companions_and_place(make):
    module, rng = make().double().eval(), np.random.default_rng(1)
    X, w = rng.normal(size=(300, WIDTH)), network.flat(module)
    y = (X[:, 0] > 0).astype(float)

    def all_of(rows, labels):
        return np.concatenate([g for _, _, g in _gradients(module, rows, labels).blocks(w)])

    whole = all_of(X, y)
    changed = X.copy()
    changed[7] = 1e3
    assert np.array_equal(np.delete(all_of(changed, y), 7, axis=0), np.delete(whole, 7, axis=0))
    order = rng.permutation(300)
    assert np.array_equal(all_of(X[order], y[order]), whole[order])
    assert np.array_equal(all_of(X[:3], y[:3]), whole[:3])


def test_no_row_moves_the_sum_by_more_than_the_clip_however_wild():
    grid = asked().plan.draws["gradient_0"].grid
    rng, seen = np.random.default_rng(2), []
    for _ in range(300):
        row = rng.normal(size=(1, 50)) * 10.0 ** rng.uniform(-3, 150)
        seen.append(np.linalg.norm(grid.values(module_steps.clipped(row, np.ones(1), 0.5, grid))))
    assert max(seen) <= 0.5
    assert max(seen) > 0.4999
    for wrong in (np.nan, np.inf):
        row = np.full((1, 50), wrong)
        assert not module_steps.clipped(row, np.ones(1), 0.5, grid).any()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 15.0, 20.0])
def test_steps_compose_to_the_guarantee_exactly(epsilon):
    guarantee = replace(CLAIM, epsilon=epsilon)
    question = asked(guarantee=guarantee, steps=37)
    assert accountant.satisfies(question.price.event, guarantee)
    assert accountant.epsilon(question.price.event, 1e-5) > 0.999 * epsilon
    assert question.plan.draws["gradient_0"].sensitivity == 2 * question.clip
    person = replace(guarantee, unit=Unit(name="person", max_rows=3))
    assert asked(guarantee=person, steps=37).plan.draws["gradient_0"].sensitivity == 6 * question.clip


def test_the_wire_carries_layers_and_numbers_only():
    question = asked(convolution())
    again = Question.from_bytes(question.to_bytes())
    assert again == question
    assert all(array.dtype == np.float64 for array in question.parts()[1].values())
    release = house(again).answer(again)
    assert release["weights"].shape == question.start.shape
    assert np.linalg.norm(release["weights"] - question.start) <= question.A * (1 + 1e-12)


def test_a_module_that_is_known_by_name_is_refused_where_it_is_not():
    module = Gated()
    network.keep("gated", module)
    question = asked(module, network={"known": "gated"})
    blob, owner = question.to_bytes(), house(question)
    assert owner.answer(Question.from_bytes(blob))["weights"].shape == question.start.shape
    network.forget("gated")
    with pytest.raises(WireError, match="No module named 'gated' is known here"):
        Question.from_bytes(blob)


def test_random_stopping_lets_one_iterate_out_and_averaging_their_mean(rehearsal):
    rows = Rows(TARGET, schema=SCHEMA, y=ANSWERS)
    path, question = [], asked(steps=6)

    def spy(question, rows, draw):
        for w in adapt(question, rows, draw):
            path.append(w)
            yield w

    adapt = module_steps.adapt
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_steps, "adapt", spy)
        taken = answer_rows(question, rows, noise=rehearsal)["weights"]
        assert any(np.array_equal(taken, w) for w in path)
        path.clear()
        mean = answer_rows(replace(question, stopping="average"), rows, noise=rehearsal)["weights"]
        assert mean == pytest.approx(np.mean(path[3:], axis=0))


def test_without_noise_to_speak_of_it_descends(rehearsal):
    from privada.privacy import ZCDP

    plenty, little = ZCDP(rho=1e6, relation="replace-one"), Penalties(alpha=0.05, kappa1=10.0)
    question = asked(guarantee=plenty, penalties=little, clip=5.0, steps=150, A=20.0, stopping="average")
    rows = Rows(TARGET, schema=SCHEMA, y=ANSWERS)
    weights = answer_rows(question, rows, noise=rehearsal)["weights"]
    module = network.build(question.network["layers"], width=WIDTH)

    def accuracy(w):
        scores = torch.func.functional_call(module, network.shaped(module, w), (torch.from_numpy(TARGET),))
        return float((scores.argmax(1).numpy() == (ANSWERS == "b")).mean())

    assert accuracy(weights) > max(0.8, accuracy(question.start))


def test_a_row_whose_loss_stays_large_loses_its_weight(rehearsal):
    """λ₁ below every loss, the parameters kept in place: all weights fall, and with them every sum."""
    rows, sums = Rows(TARGET, schema=SCHEMA, y=ANSWERS), {}
    for kappa1 in (1e-6, 10.0):
        question = asked(penalties=Penalties(alpha=0.3, kappa1=kappa1), steps=20, A=1e-9)
        kept = []
        answer_rows(
            question, rows, noise=rehearsal, witness=lambda name, _, exact, kept=kept: kept.append(exact)
        )
        sums[kappa1] = np.linalg.norm(kept[-1])
    assert sums[1e-6] < 0.7 * sums[10.0]


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ([{"layer": "Dropout", "p": 0.5}], "layer"),
        ([{"layer": "Linear", "in_features": 4, "out_features": 2}], "Expected Linear with"),
        ([{"layer": "Linear", "in_features": 5, "out_features": 2, "bias": True}], "rows of 4"),
        ([{"layer": "Linear", "in_features": 4, "out_features": 2_000_000, "bias": True}], "parameters"),
        ([{"layer": "Linear", "in_features": 4, "out_features": "2", "bias": True}], "out_features"),
        (
            [
                {"layer": "Unflatten", "dim": 1, "unflattened_size": [1, 2, 2]},
                {"layer": "Conv2d", "in_channels": 1, "out_channels": 1, "kernel_size": [1, 1]}
                | {"stride": [1, 1], "padding": [5000, 5000], "bias": True},
            ],
            "activations",
        ),
        ([], "1 to 100 layers"),
        ("import os", "1 to 100 layers"),
    ],
)
def test_bad_layers_are_refused_by_name(layers, said):
    with pytest.raises(InputError, match=said):
        asked(network={"layers": layers}, start=np.zeros(10))


@pytest.mark.parametrize(
    "part", [torch.nn.Dropout(), torch.nn.BatchNorm1d(4), torch.nn.Conv1d(4, 4, 1, groups=2)]
)
def test_layers_that_cannot_be_declared_are_named(part):
    with pytest.raises(InputError, match="cannot be declared"):
        network.declare(torch.nn.Sequential(torch.nn.Linear(4, 4), part))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clip": 0.0}, "clip"),
        ({"A": -1.0}, "A > 0"),
        ({"steps": 0}, "steps"),
        ({"loss": "hinge"}, "loss"),
        ({"stopping": "last"}, "stopping"),
        ({"start": np.zeros(3)}, "start"),
        ({"start": np.full(62, np.nan)}, "start"),
        ({"scale": np.zeros(WIDTH)}, "scale"),
        ({"source_labels": np.full(20, 2.0)}, "source_labels"),
        ({"loss": "squared"}, "one output"),
        ({"penalties": Penalties(alpha=0.3, kappa_inf=0.1)}, "kappa_inf"),
        ({"penalties": Penalties(alpha=1.0)}, "alpha"),
        ({"guarantee": PureDP(epsilon=1, relation="replace-one")}, "epsilon, delta"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_parameters_are_named(change, said):
    with pytest.raises(InputError, match=said):
        asked(**change)


def test_add_remove_is_refused():
    with pytest.raises(RelationError):
        asked(guarantee=replace(CLAIM, relation="add/remove"))


def test_another_schema_is_refused_before_any_charge():
    question = asked()
    owner = house(question, schema=NUMERIC, y=TARGET[:, 0])
    with pytest.raises(InputError):
        owner.answer(question)
    numbers = asked(perceptron(1), loss="squared", source_labels=SOURCE[:, 0])
    assert owner.answer(numbers)["weights"].shape == numbers.start.shape
    with pytest.raises(InputError, match="size"):
        house(question).answer(asked(size=N + 1))


def test_places_without_a_row_weigh_nothing(rehearsal):
    """A person's rows may be fewer than the public size has room for: no contribution, not a made-up one."""
    schema, sums = replace(SCHEMA, size=None), []
    for rows in (
        Rows(TARGET[:5], schema=schema, y=ANSWERS[:5]),
        Rows(TARGET[:0], schema=schema, y=ANSWERS[:0]),
    ):
        seen = []
        answer_rows(
            asked(), rows, noise=rehearsal, witness=lambda _, __, exact, seen=seen: seen.append(exact)
        )
        sums.append(seen)
    assert np.any(sums[0][0])
    assert not np.any(sums[1])
