import re
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from privada import AskOwner, Mailbox, Owner, Schema
from privada.exceptions import AnswerError, InputError
from privada.methods.cells.questions import kernels, partition
from privada.methods.hypotheses.onnx import run
from privada.methods.marginals import Constant, Network, Onnx, OutcomeTables, linear, of_classifier
from privada.methods.marginals.example import TABLES
from privada.parties import Category
from privada.privacy import PureDP, Question

PURE = PureDP(epsilon=1, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Category(name="label", values=(0, 1)))


def graph(nodes, output=TensorProto.INT64, initializers=()):
    """A model of rows of two floats."""
    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    out = helper.make_tensor_value_info("y", output, ["n"])
    made = helper.make_graph(nodes, "g", [rows], [out], list(initializers))
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return np.frombuffer(model.SerializeToString(), dtype=np.uint8)


def test_a_label_does_not_depend_on_the_rows_beside_it():
    """Hazard 10: rounding that depends on a record's place would move other records' outcomes."""
    rng = np.random.default_rng(0)
    layers = tuple((rng.normal(size=s), rng.normal(size=s[1])) for s in ((7, 33), (33, 19), (19, 3)))
    X = rng.normal(size=(257, 7))
    for activation in ("relu", "tanh"):
        network = Network(layers=layers, activation=activation)
        alone = np.vstack([network.scores(X[i : i + 1]) for i in range(len(X))])
        assert np.array_equal(network.scores(X), alone)
        assert np.array_equal(network.scores(X[5:100]), alone[5:100])


def test_networks_and_linear_models_keep_their_predictions():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    mean, scale = np.array([0.1, 0.0, -0.2]), np.array([1.0, 2.0, 0.5])
    model = MLPClassifier((8,), max_iter=300, random_state=0, tol=1e-2).fit((X - mean) / scale, y)
    hypothesis = of_classifier(model, mean=mean, scale=scale)
    assert isinstance(hypothesis, Network)
    assert np.array_equal(hypothesis.codes(X), model.predict((X - mean) / scale))


@pytest.mark.parametrize(
    "layers", [(), ((np.eye(2), np.zeros(3)),), ((np.eye(2), np.zeros(2)), (np.eye(3), np.zeros(3)))], ids=len
)
def test_layers_that_do_not_follow_each_other_are_refused(layers):
    with pytest.raises(InputError, match="layer"):
        Network(layers=layers)


def wide(units, depth=1):
    hidden = [(np.ones((units, units)), np.zeros(units)) for _ in range(depth - 1)]
    return ((np.ones((2, units)), np.zeros(units)), *hidden, (np.ones((units, 1)), np.zeros(1)))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (wide(1_300_000), "at most 65536 columns"),
        (wide(1_500, depth=3), "at most 4000000 parameters"),
        (wide(2, depth=100), "at most 100 layers, got 101"),
    ],
    ids=["a wide layer", "many parameters", "many layers"],
)
def test_networks_have_public_limits(layers, message):
    """A layer of a million units takes ten megabytes a row, so that the number of rows would decide."""
    with pytest.raises(InputError, match=message):
        Network(layers=layers)


def test_rows_go_through_a_network_in_chunks_of_a_public_size(monkeypatch):
    rng = np.random.default_rng(3)
    layers = ((rng.normal(size=(2, 16)), rng.normal(size=16)), (rng.normal(size=(16, 3)), np.zeros(3)))
    network, X = Network(layers=layers), rng.normal(size=(100, 2))
    codes, scores = network.codes(X), network.scores(X)
    seen, forward = [], kernels.forward
    monkeypatch.setattr(kernels, "forward", lambda X, *rest: seen.append(len(X)) or forward(X, *rest))
    monkeypatch.setattr(partition, "CHUNK_NUMBERS", 16 * 40)
    assert np.array_equal(network.codes(X), codes)
    assert np.array_equal(network.scores(X), scores)
    assert seen == [40, 40, 20] * 2
    assert network.codes(X[:0]).tolist() == []


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_every_row_has_a_class_where_scores_are_beyond_floats(activation):
    """Weights as large as floats go: sums are infinite, or no number, for some rows only."""
    rng = np.random.default_rng(4)
    signs = [rng.choice([-1.7e308, 1.7e308], size=shape) for shape in ((2, 5), (5, 3))]
    network = Network(layers=tuple((each, each[0]) for each in signs), activation=activation)
    X = np.vstack([rng.uniform(-1e10, 1e10, size=(40, 2)), np.zeros((1, 2))])
    codes = network.codes(X)
    assert set(codes) <= {0, 1, 2}
    assert [network.codes(row[None])[0] for row in X] == codes.tolist()


def test_other_classifiers_travel_as_onnx_and_run_at_the_owners():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(200, 2))
    y = (X[:, 0] > 0.5).astype(int)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    hypothesis = of_classifier(forest, mean=np.zeros(2), scale=np.ones(2))
    assert isinstance(hypothesis, Onnx)
    question = Question.from_bytes(
        OutcomeTables(tables=TABLES, hypothesis=hypothesis, guarantee=PURE).to_bytes()
    )
    assert (question.hypothesis.codes(X) == forest.predict(X)).mean() > 0.99  # ONNX compares in float32
    release = Owner(X, y=y, schema=SCHEMA, dataset="rows", budget=PURE).answer(question)
    assert release["table.0"].shape == (3, 2)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([helper.make_node("RandomNormalLike", ["x"], ["y"])], "RandomNormalLike is not allowed"),
        ([helper.make_node("NonZero", ["x"], ["y"])], "NonZero is not allowed"),
        ([helper.make_node("Conv", ["x", "x"], ["y"])], "Conv is not allowed"),
    ],
    ids=["random", "size by values", "not listed"],
)
def test_operators_beyond_the_list_are_refused(nodes, message):
    with pytest.raises(InputError, match=message):
        Onnx(model=graph(nodes, TensorProto.FLOAT)).fits(2, 2)


def looping():
    """Turns 2^62 times."""
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    turns = helper.make_tensor("m", TensorProto.INT64, [], [2**62])
    ins = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("ci", TensorProto.BOOL, []),
    ]
    body = helper.make_graph(
        [helper.make_node("Identity", ["ci"], ["co"])],
        "body",
        ins,
        [helper.make_tensor_value_info("co", TensorProto.BOOL, [])],
    )
    nodes = [
        helper.make_node("Loop", ["m", "c"], [], body=body),
        helper.make_node("ArgMax", ["x"], ["y"], axis=1),
    ]
    return graph(nodes, initializers=[condition, turns])


def test_loops_are_refused():
    with pytest.raises(InputError, match="Loop is not allowed|valid ONNX"):
        Onnx(model=looping()).fits(2, 2)


def test_rubbish_is_refused():
    for blob in (b"", b"\x00" * 50, b"import os"):
        with pytest.raises(InputError, match="ONNX model"):
            Onnx(model=np.frombuffer(blob, dtype=np.uint8)).fits(2, 2)


def doubling(times):
    """Concatenates itself again and again: without end for a memory."""
    names = ["x", *(f"a{i}" for i in range(times))]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=1) for a, b in pairwise(names)]
    return graph([*nodes, helper.make_node("ArgMax", [names[-1]], ["y"], axis=1)])


def failing():
    wrong = helper.make_tensor("w", TensorProto.FLOAT, [3, 1], [1.0, 1.0, 1.0])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("ArgMax", ["z"], ["y"], axis=1),
    ]
    return graph(nodes, initializers=[wrong])


def many_codes():
    scale = helper.make_tensor("s", TensorProto.FLOAT, [1], [100.0])
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["r"], keepdims=0),
        helper.make_node("Mul", ["r", "s"], ["z"]),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.INT64),
    ]
    return graph(nodes, initializers=[scale])


def squaring(times):
    """Squares a matrix of a million entries again and again: allowed, small, and far too slow."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [1024, 1024])
    wide = ["x", *(f"a{i}" for i in range(19))]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=1) for a, b in pairwise(wide)]
    squares = ["b", *(f"b{i}" for i in range(times))]
    nodes.append(helper.make_node("Reshape", [wide[-1], "shape"], ["b"]))
    nodes += [helper.make_node("MatMul", [a, a], [b]) for a, b in pairwise(squares)]
    return graph([*nodes, helper.make_node("ArgMax", [squares[-1]], ["y"], axis=1)], initializers=[shape])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (doubling(40), "passes a limit"),
        (failing(), "fails"),
        (many_codes(), "other than class codes"),
        (graph([helper.make_node("Relu", ["x"], ["y"])], TensorProto.FLOAT), "other than class codes"),
    ],
    ids=["allocates without end", "errs", "other codes", "no labels"],
)
def test_a_hypothesis_that_misbehaves_is_refused_and_the_owner_keeps_serving(model, message):
    X, y = np.full((6, 2), 0.25), np.array([0, 1] * 3)
    owner = Owner(X, y=y, schema=SCHEMA, dataset="rows", budget=PURE)
    with pytest.raises(InputError, match=f"{message}.*nothing was charged"):
        owner.answer(OutcomeTables(tables=TABLES, hypothesis=Onnx(model=model), guarantee=PURE))
    assert len(list(owner.ledger.lines("rows"))) == 1
    owner.answer(OutcomeTables(tables=TABLES, hypothesis=Constant(code=1), guarantee=PURE))


def test_files_of_a_hostile_learner_are_refused_and_the_others_are_answered(tmp_path):
    """A loop, work or memory without end, an error: none is charged, and the owner keeps serving."""
    hostile = [looping(), squaring(1500), doubling(41), failing()]
    asked = [OutcomeTables(tables=TABLES, hypothesis=Onnx(model=model), guarantee=PURE) for model in hostile]
    mailbox = Mailbox.open(tmp_path)
    honest = OutcomeTables(tables=TABLES, hypothesis=Constant(code=1), guarantee=PURE)
    for question in (*asked, honest):
        mailbox.ask(AskOwner("clinic", question))
    X, y = np.full((6, 2), 0.25), np.array([0, 1] * 3)
    owner = Owner(X, y=y, schema=SCHEMA, dataset="rows", budget=PURE)
    found = {each.digest: each for each in mailbox.answer("clinic", owner)}
    reasons = [found[question.digest].reason for question in asked]
    assert re.search("not allowed|valid ONNX", reasons[0])
    assert all("passes a limit" in reason and "nothing was charged" in reason for reason in reasons[1:])
    assert {found[question.digest].outcome for question in asked} == {"refused"}
    assert found[honest.digest].outcome == "answered"
    assert len(list(owner.ledger.lines("rows"))) == 2  # its opening, and the honest question
    assert owner.ledger.spent("rows").epsilon == pytest.approx(1)


def test_records_cannot_see_each_other_through_a_graph():
    """A graph that takes the largest over all rows sees one row at a time: a neighbour moves nothing."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=1),
        helper.make_node("ArgMax", ["m"], ["y"], axis=1, keepdims=0),
    ]
    model = graph(nodes)
    X = np.array([[1.0, 0.0], [0.0, 9.0], [3.0, 1.0]])
    assert run(model.tobytes(), X).tolist() == [0, 1, 0]
    assert run(model.tobytes(), X[[0, 2]]).tolist() == [0, 0]


def test_a_model_that_cannot_be_loaded_fails_before_any_row_is_sent():
    model = graph([helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)]).tobytes()
    for rows in (1, 10):
        with pytest.raises(AnswerError, match="could not be loaded within its limits"):
            run(model, np.zeros((rows, 2)), memory=50_000_000)
    assert run(model, np.zeros((0, 2))).tolist() == []


def test_a_failure_after_the_charge_costs_that_round_alone(monkeypatch):
    X, y = np.full((6, 2), 0.25), np.array([0, 1] * 3)
    owner = Owner(X, y=y, schema=SCHEMA, dataset="rows", budget=PureDP(epsilon=2, relation="add/remove"))
    model = graph([helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)])
    asked = OutcomeTables(tables=TABLES, hypothesis=Onnx(model=model), guarantee=PURE)
    asked.hypothesis.fits(2, 2)
    monkeypatch.setattr(Onnx, "codes", lambda self, X: run(self.model.tobytes(), X, memory=50_000_000))
    with pytest.raises(AnswerError, match="charge stands"):
        owner.answer(asked)
    assert owner.ledger.spent("rows").epsilon == pytest.approx(1)
    owner.answer(OutcomeTables(tables=TABLES, hypothesis=linear([[1.0], [1.0]], [0.0]), guarantee=PURE))


def test_onnx_is_a_checked_model():
    model = graph([helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)])
    onnx.checker.check_model(onnx.load_model_from_string(model.tobytes()))
    Onnx(model=model).fits(2, 2)
    with pytest.raises(InputError, match="fails"):
        Onnx(model=model).fits(3, 2)


def test_a_model_of_one_class_travels_as_a_constant():
    from sklearn.dummy import DummyClassifier

    model = DummyClassifier(strategy="constant", constant=1).fit(np.zeros((3, 2)), [1, 1, 1])
    found = of_classifier(model, mean=np.zeros(2), scale=np.ones(2))
    assert isinstance(found, Constant)
    assert found.codes(np.ones((4, 2))).tolist() == [1, 1, 1, 1]


def test_forms_without_scores_say_so_and_networks_check_their_ends():
    with pytest.raises(InputError, match="constant hypothesis has no scores"):
        Constant(code=0).scores(np.zeros((1, 2)))
    with pytest.raises(InputError, match="constant hypothesis has no scores"):
        Constant(code=0).fits_scores(2, 1)
    network = linear([[1.0], [0.0]], [-0.5])
    network.fits_scores(2, network.outputs)
    with pytest.raises(InputError, match="from 2 features to 2 scores, got 2 to 1"):
        network.fits_scores(2, 2)
