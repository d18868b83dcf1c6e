"""One record decides nothing but its own outcome, whatever graph an owner is asked to run."""

import os
import resource
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from privada import Owner, Policy, Schema
from privada.exceptions import AnswerError, InputError, PolicyError
from privada.methods.hypotheses import onnx as wire_onnx
from privada.methods.hypotheses._onnx_worker import FAILED, NONE, rows_at_once
from privada.methods.hypotheses.onnx import run
from privada.methods.marginals import HypothesisChoice, Onnx, OutcomeTables
from privada.methods.marginals.example import TABLES
from privada.parties import Category, Rows
from privada.parties.answering import answerer
from privada.privacy import PureDP

PURE = PureDP(epsilon=1, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Category(name="label", values=(0, 1)))
VICTIM = [0.77, 0.33]
OTHERS = np.random.default_rng(0).uniform(size=(20, 2))
WITH = np.vstack([OTHERS[:7], VICTIM, OTHERS[7:]])


def floats(name, values, shape=None):
    return helper.make_tensor(name, TensorProto.FLOAT, [len(values)] if shape is None else shape, values)


def whole(name, values, shape=None):
    return helper.make_tensor(name, TensorProto.INT64, [len(values)] if shape is None else shape, values)


def graph(nodes, initializers=(), output=TensorProto.INT64):
    """A model of rows of two floats."""
    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    out = helper.make_tensor_value_info("y", output, ["m"])
    made = helper.make_graph(nodes, "g", [rows], [out], list(initializers))
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def aimed(nodes, initializers=(), *, at, else_=0):
    """A model whose number ``k`` is ``at`` for the victim and ``else_`` for every other row."""
    first = [
        helper.make_node("Sub", ["x", "victim"], ["d"]),
        helper.make_node("Abs", ["d"], ["a"]),
        helper.make_node("ReduceMax", ["a"], ["far"], keepdims=0),
        helper.make_node("Less", ["far", "near"], ["hit"]),
        helper.make_node("Where", ["hit", "at", "else"], ["k"]),
    ]
    own = [floats("victim", VICTIM), floats("near", [1e-3]), whole("at", [at]), whole("else", [else_])]
    return graph([*first, *nodes], [*own, *initializers])


def turning():
    """Turns as often as ``k`` says."""
    ins = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("ci", TensorProto.BOOL, []),
    ]
    ins.append(helper.make_tensor_value_info("vi", TensorProto.INT64, [1]))
    outs = [
        helper.make_tensor_value_info("co", TensorProto.BOOL, []),
        helper.make_tensor_value_info("vo", TensorProto.INT64, [1]),
    ]
    same = [helper.make_node("Identity", [a], [b]) for a, b in (("ci", "co"), ("vi", "vo"))]
    body = helper.make_graph(same, "body", ins, outs)
    return [
        helper.make_node("Squeeze", ["k"], ["turns"]),
        helper.make_node("Loop", ["turns", "", "zero"], ["y"], body=body),
    ]


GATHER = aimed([helper.make_node("Gather", ["table", "k"], ["y"])], [whole("table", [0])], at=5)
DIVIDE = aimed([helper.make_node("Div", ["zero", "k"], ["y"])], [whole("zero", [0])], at=0, else_=1)
RESHAPE = aimed([helper.make_node("Reshape", ["table", "k"], ["y"])], [whole("table", [0])], at=5, else_=1)
EXPAND = aimed(
    [
        helper.make_node("Expand", ["zero", "k"], ["w"]),
        helper.make_node("ReduceMax", ["w"], ["y"], keepdims=0),
    ],
    [whole("zero", [0])],
    at=2**40,
    else_=1,
)
TURN = aimed(turning(), [whole("zero", [0])], at=2**60, else_=1)


def counted(question, X, y):
    """What the answerer hands to its draws."""
    seen = {}
    rows = Rows(X, y=y, schema=SCHEMA)
    answerer(question)(question, rows, lambda name, value: seen.setdefault(name, np.array(value)))
    return seen


@pytest.mark.parametrize(
    "model",
    [GATHER, DIVIDE, RESHAPE, EXPAND, TURN],
    ids=["errs", "kills the process", "errs by shape", "takes all memory", "never ends"],
)
def test_a_record_whose_run_fails_has_no_class_and_the_others_keep_theirs(model):
    """Not what an owner's check lets pass: the worker does not rely on it."""
    assert run(model, OTHERS, seconds=0.3).tolist() == [0] * 20
    assert run(model, WITH, seconds=0.3).tolist() == [0] * 7 + [FAILED] + [0] * 13


def test_records_that_fail_are_not_counted_against_those_after_them():
    X = np.vstack([[VICTIM] * 12, OTHERS, [VICTIM] * 3])
    assert run(DIVIDE, X).tolist() == [FAILED] * 12 + [0] * 20 + [FAILED] * 3


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GATHER, "Gather has a computed index"),
        (DIVIDE, "Div is allowed for floats only"),
        (RESHAPE, "Reshape has a computed shape"),
        (EXPAND, "Expand is not allowed"),
        (TURN, "Loop is not allowed"),
    ],
    ids=["index", "division", "shape", "size", "loop"],
)
def test_graphs_whose_run_can_fail_for_some_records_are_refused(model, message):
    with pytest.raises(InputError, match=f"{message}.*; nothing was charged"):
        Onnx(model=np.frombuffer(model, dtype=np.uint8)).fits(2, 2)


def computed(operator, *more):
    """An operator whose second input is made of the row."""
    node = helper.make_node(operator, ["x", *more, "k"], ["y"])
    return aimed([node], [whole("zero", [0])], at=1)


@pytest.mark.parametrize(
    "model",
    [
        computed("Slice", "zero"),
        computed("Split"),
        computed("Squeeze"),
        computed("Unsqueeze"),
        computed("ReduceSum"),
    ],
    ids=["Slice", "Split", "Squeeze", "Unsqueeze", "ReduceSum"],
)
def test_computed_shapes_and_axes_are_refused(model):
    with pytest.raises(InputError, match="computed shape or axis"):
        Onnx(model=np.frombuffer(model, dtype=np.uint8)).fits(2, 2)


def beyond_its_table():
    """Allowed, for skl2onnx writes such graphs: the place of a largest, in a table that is too short."""
    nodes = [
        helper.make_node("Sub", ["x", "victim"], ["d"]),
        helper.make_node("Abs", ["d"], ["a"]),
        helper.make_node("ReduceMax", ["a"], ["far"], axes=[1], keepdims=1),
        helper.make_node("Sub", ["near", "far"], ["hit"]),
        helper.make_node("Concat", ["nothing", "hit"], ["scores"], axis=1),
        helper.make_node("ArgMax", ["scores"], ["k"], axis=1, keepdims=0),
        helper.make_node("Gather", ["table", "k"], ["y"]),
    ]
    own = [floats("victim", VICTIM), floats("near", [1e-3]), floats("nothing", [0.0], [1, 1])]
    return np.frombuffer(graph(nodes, [*own, whole("table", [0])]), dtype=np.uint8)


@pytest.mark.parametrize("count", ["errors", "signed", "classes"])
def test_neighbours_are_both_answered_and_differ_by_one_record(count):
    hypothesis = Onnx(model=beyond_its_table())
    question = OutcomeTables(tables=TABLES, hypothesis=hypothesis, count=count, guarantee=PURE)
    y = np.zeros(21, dtype=int)
    for X in (OTHERS, WITH):
        owner = Owner(
            X, y=y[: len(X)], schema=SCHEMA, dataset="rows", budget=PURE, policy=Policy(assumed_size=100)
        )
        assert owner.answer(question)["table.0"].shape[0] == 3
    without, whole_ = counted(question, OTHERS, y[:20]), counted(question, WITH, y)
    for name in question.names():
        moved = whole_[name] - without[name]
        assert np.abs(moved).sum() == 1
    if count == "errors":
        assert (whole_["table.0"] - without["table.0"]).sum(axis=0).tolist() == [1, 0]  # an error


def test_a_choice_counts_a_record_without_a_class_as_wrong():
    hypothesis = Onnx(model=beyond_its_table())
    question = HypothesisChoice(candidates=(hypothesis, hypothesis), guarantee=PURE)
    y = np.zeros(21, dtype=int)
    assert counted(question, OTHERS, y[:20])["choice"].tolist() == [20, 20]
    assert counted(question, WITH, y)["choice"].tolist() == [20, 20]


def test_codes_beyond_all_classes_are_none():
    """Of an unsigned number that no int64 holds, and of a negative one that means something else here."""
    scale = floats("s", [1.9e19])
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Mul", ["m", "s"], ["z"]),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.UINT64),
    ]
    model = graph(nodes, [scale], TensorProto.UINT64)
    assert run(model, np.array([[0.0, 0.0], [0.9, 0.9], [0.0, 0.0]])).tolist() == [0, NONE, 0]
    negative = graph([helper.make_node("Identity", ["c"], ["y"])], [whole("c", [FAILED])])
    assert run(negative, OTHERS[:2]).tolist() == [NONE, NONE]


def test_rows_travel_in_chunks_of_one_size():
    """So that neither memory nor what a record gets depends on how many there are."""
    model = graph([helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)])
    X = np.random.default_rng(1).normal(size=(2 * rows_at_once(2) + 3, 2))
    assert np.array_equal(run(model, X), X.argmax(axis=1))
    assert rows_at_once(10**7) == 1


def external(name):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "rows.bin", "offset": "0", "length": "8"}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def test_a_constant_is_not_read_from_a_file_of_the_owners(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.array([1.0, 0.0], dtype=np.float32).tofile("rows.bin")
    nodes = [
        helper.make_node("Constant", [], ["w"], value=external("w")),
        helper.make_node("Add", ["x", "w"], ["q"]),
        helper.make_node("ArgMax", ["q"], ["y"], axis=1, keepdims=0),
    ]
    with pytest.raises(InputError, match="external data"):
        Onnx(model=np.frombuffer(graph(nodes), dtype=np.uint8)).fits(2, 2)
    with pytest.raises(InputError, match="external data"):
        Onnx(model=np.frombuffer(graph(nodes[1:], [external("w")]), dtype=np.uint8)).fits(2, 2)


def hidden(*places):
    """Models whose tensor of another file is where a checker, but not everybody, would look."""
    found = []
    for place in places:
        model = ModelProto.FromString(graph([helper.make_node("ArgMax", ["x"], ["y"], axis=1)]))
        place(model).CopyFrom(external("w"))
        found.append(model.SerializeToString())
    return found


def in_a_subgraph(model):
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=floats("c", [1.0]))], "i", [], []
    )
    part = model.graph.node[0].attribute.add(name="body", type=AttributeProto.GRAPH)
    part.g.CopyFrom(inner)
    return part.g.node[0].attribute[0].t


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(
    "model",
    hidden(
        lambda model: model.graph.initializer.add(),
        lambda model: model.graph.node[0].attribute.add(name="t", type=AttributeProto.TENSOR).t,
        lambda model: model.graph.node[0].attribute.add(name="s", type=AttributeProto.TENSORS).tensors.add(),
        lambda model: model.training_info.add().initialization.initializer.add(),
        in_a_subgraph,
    ),
    ids=["initializer", "attribute", "attributes", "training", "subgraph"],
)
def test_whether_a_file_exists_cannot_be_told(tmp_path, monkeypatch, model, exists):
    """The same refusal with and without the file, before anything looks for it; nor does loading look."""
    monkeypatch.chdir(tmp_path)
    if exists:
        np.array([1.0, 0.0], dtype=np.float32).tofile("rows.bin")
    wire_onnx._VERDICTS.clear()
    with pytest.raises(
        InputError, match="^Expected an ONNX model without external data; nothing was charged"
    ):
        Onnx(model=np.frombuffer(model, dtype=np.uint8)).fits(2, 2)


@pytest.mark.parametrize("location", ["/etc/hosts", "/etc/no-such-file"])
def test_loading_looks_for_no_file_either(location):
    """Not what an owner's check lets pass: the worker does not rely on it."""
    tensor = external("w")
    tensor.external_data[0].value = location
    nodes = [
        helper.make_node("Add", ["x", "w"], ["q"]),
        helper.make_node("ArgMax", ["q"], ["y"], axis=1, keepdims=0),
    ]
    with pytest.raises(AnswerError, match="could not be loaded"):
        run(graph(nodes, [tensor]), OTHERS)


def test_strings_are_refused():
    """Not every string is a number: reading one as such would fail for some records."""
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING),
        helper.make_node("Cast", ["s"], ["y"], to=TensorProto.INT64),
    ]
    with pytest.raises(InputError, match="strings"):
        Onnx(model=np.frombuffer(graph(nodes), dtype=np.uint8)).fits(2, 2)


@pytest.mark.parametrize("path", ["", ".", None], ids=["an empty entry", "a relative entry", "no path"])
def test_the_worker_takes_no_library_from_the_current_directory(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for name in ("onnxruntime", "numpy", "struct", "mmap"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'taken')!r}, 'w')\nraise SystemExit(3)\n")
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([path, os.environ.get("PYTHONPATH", "")]))
    model = graph([helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)])
    assert run(model, np.array([[0.0, 1.0]])).tolist() == [1]
    assert not (tmp_path / "taken").exists()


def test_the_worker_is_gone_when_its_caller_is_interrupted(monkeypatch):
    made = []
    start = wire_onnx._start_process
    monkeypatch.setattr(wire_onnx, "_start_process", lambda: made.append(start()) or made[0])

    def interrupted(stream, length):
        raise KeyboardInterrupt

    monkeypatch.setattr(wire_onnx, "_read_exactly", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(GATHER, OTHERS)
    assert made[0].returncode is not None


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SGDClassifier(loss="log_loss", random_state=0),
        MLPClassifier((3,), activation="logistic", max_iter=300, tol=1e-2, random_state=0),
        BaggingClassifier(n_estimators=3, random_state=0),
        QuadraticDiscriminantAnalysis(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_skl2onnx_makes_of_classifiers_is_allowed(model, classes):
    """Places of the largest score, constant shapes, and divisions of floats."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.digitize(X[:, 0], np.linspace(-0.4, 0.4, classes - 1))
    fitted = model.fit(X, y)
    hypothesis = wire_onnx.of_model(fitted, mean=np.zeros(2), scale=np.ones(2))
    hypothesis.fits(2, classes)
    assert (hypothesis.codes(X) == fitted.predict(X)).mean() > 0.98


CONSTANTS = """
import resource, sys, time
import numpy as np
from privada.exceptions import InputError
from privada.methods.marginals import Onnx
hypothesis = Onnx(model=np.frombuffer(sys.stdin.buffer.read(), dtype=np.uint8))
try:
    hypothesis.fits(2, 2)
except InputError as error:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, error, sep="\\n")
"""


def folding(size, times):
    """Squares a constant matrix again and again, which a runtime would do once, at load."""
    names = ["c", *(f"c{i}" for i in range(times))]
    nodes = [helper.make_node("MatMul", ["column", "row"], ["c"])]
    nodes += [helper.make_node("MatMul", [a, a], [b]) for a, b in pairwise(names)]
    nodes += [
        helper.make_node("ReduceMax", [names[-1]], ["m"], keepdims=0),
        helper.make_node("Add", ["x", "m"], ["z"]),
        helper.make_node("ArgMax", ["z"], ["y"], axis=1, keepdims=0),
    ]
    return graph(nodes, [floats("column", [0.0] * size, [size, 1]), floats("row", [0.0] * size, [1, size])])


@pytest.mark.parametrize(
    ("size", "times", "reason"),
    [(2048, 1500, "passes a limit of 67108864 numbers"), (2048, 14, "passes a limit, on public rows")],
    ids=["too many numbers", "too slow"],
)
def test_constants_are_not_folded_at_load(size, times, reason):
    """Before, a small file took a minute and gigabytes of an owner that had charged nothing."""
    done = subprocess.run(
        [sys.executable, "-c", CONSTANTS],
        input=folding(size, times),
        capture_output=True,
        check=True,
        timeout=60,
    )
    seconds, gigabytes, error = done.stdout.decode().splitlines()
    assert reason in error
    assert float(seconds) < 10
    assert float(gigabytes) < 1


def growing(below):
    """A regression tree whose node i has these two nodes below it; negative is a leaf."""
    places = list(range(len(below)))
    leaves = [place for place in places if below[place][0] < 0]
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["t"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * len(below),
        nodes_nodeids=places,
        nodes_featureids=[0] * len(below),
        nodes_modes=["LEAF" if place in leaves else "BRANCH_LEQ" for place in places],
        nodes_values=[1e6] * len(below),
        nodes_truenodeids=[max(pair[0], 0) for pair in below],
        nodes_falsenodeids=[max(pair[1], 0) for pair in below],
        target_treeids=[0] * len(leaves),
        target_nodeids=leaves,
        target_ids=[0] * len(leaves),
        target_weights=[1.0] * len(leaves),
    )
    model = ModelProto.FromString(graph([node, helper.make_node("Cast", ["t"], ["y"], to=TensorProto.INT64)]))
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    return np.frombuffer(model.SerializeToString(), dtype=np.uint8)


LEAF = (-1, -1)


def chain(depth):
    """Ends at once for public rows; others go down to the last level."""
    return [pair for step in range(depth) for pair in ((2 * step + 1, 2 * step + 2), LEAF)] + [LEAF]


@pytest.mark.parametrize("below", [[(1, 0), LEAF], [(1, 2), LEAF, (1, 0)], chain(1200)])
def test_trees_that_do_not_end_for_some_records_are_refused(below):
    with pytest.raises(InputError, match="TreeEnsembleRegressor has trees of more than 1000 levels"):
        Onnx(model=growing(below)).fits(2, 2)


def test_runs_that_may_fail_count_although_no_public_row_makes_one_fail():
    """Each needs a new process, which takes longer than the run."""
    assert Onnx(model=beyond_its_table()).seconds(2) > wire_onnx.FAILURE_SECONDS
    X = np.random.default_rng(0).normal(size=(60, 2))
    for classes in (2, 3):
        y = np.digitize(X[:, 0], np.linspace(-0.4, 0.4, classes - 1))
        for model in (
            QuadraticDiscriminantAnalysis(),
            BaggingClassifier(n_estimators=2, random_state=0),
            SGDClassifier(random_state=0),
            MLPClassifier((3,), activation="logistic", max_iter=20, tol=1.0, random_state=0),
        ):
            made = wire_onnx.of_model(model.fit(X, y), mean=np.zeros(2), scale=np.ones(2))
            assert made.seconds(2) < wire_onnx.FAILURE_SECONDS, model


def test_levels_of_trees_count_although_no_public_row_goes_down():
    flat, deep = Onnx(model=growing([(1, 2), LEAF, LEAF])), Onnx(model=growing(chain(900)))
    flat.fits(2, 2)
    deep.fits(2, 2)
    assert deep.seconds(2) > 900 * wire_onnx.LEVEL_SECONDS > flat.seconds(2) / 100


def working(times):
    """Takes a public record some milliseconds, which is allowed."""
    wide = ["x", *(f"a{i}" for i in range(15))]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=1) for a, b in pairwise(wide)]
    squares = ["b", *(f"b{i}" for i in range(times))]
    nodes.append(helper.make_node("Reshape", [wide[-1], "shape"], ["b"]))
    nodes += [helper.make_node("MatMul", [a, a], [b]) for a, b in pairwise(squares)]
    nodes += [
        helper.make_node("ReduceMax", [squares[-1]], ["m"], keepdims=0),
        helper.make_node("Add", ["x", "m"], ["z"]),
        helper.make_node("ArgMax", ["z"], ["y"], axis=1, keepdims=0),
    ]
    return np.frombuffer(graph(nodes, [whole("shape", [256, 256])]), dtype=np.uint8)


def test_work_is_limited_for_the_declared_size():
    """A record in a few milliseconds is no reason to refuse; a hundred thousand of them are."""
    hypothesis = Onnx(model=working(5))
    question = OutcomeTables(tables=TABLES, hypothesis=hypothesis, guarantee=PURE)
    label = Category(name="label", values=(0, 1))
    small, large = (
        Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=label, size=size) for size in (100, 10**8)
    )
    question.fits(small)
    own = hypothesis.seconds(2)
    assert 1e-4 < own < wire_onnx.TRIAL_SECONDS
    policy = Policy(longest_answer=600)
    policy.admit_work(question, small)
    with pytest.raises(PolicyError, match="could take .* seconds for 100000000 rows; the owner allows 600"):
        policy.admit_work(question, large)
    assert question.seconds(large, rows=1000) >= 1000 * own


def test_seconds_of_a_trial_are_those_of_an_answer():
    """Within what caches and a busy machine make of it."""
    hypothesis = Onnx(model=working(5))
    hypothesis.fits(2, 2)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    hypothesis.codes(np.zeros((400, 2)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = (after.ru_utime - before.ru_utime) / 400
    assert took / 5 < hypothesis.seconds(2) < 5 * took


def test_a_choice_of_models_is_not_tried_without_end(monkeypatch):
    from privada.methods.marginals import questions

    monkeypatch.setattr(questions, "TRIALS_SECONDS", 0.0)
    question = HypothesisChoice(candidates=(Onnx(model=working(1)),) * 2, guarantee=PURE)
    with pytest.raises(InputError, match="take more than 0 seconds to try"):
        question.fits(SCHEMA)


def test_a_model_is_tried_once(monkeypatch):
    started = []
    start = wire_onnx._start_process
    monkeypatch.setattr(wire_onnx, "_start_process", lambda: started.append(start()) or started[-1])
    wire_onnx._VERDICTS.clear()
    hypothesis = Onnx(model=working(1))
    for _ in range(2):
        Onnx(model=hypothesis.model).fits(2, 2)
        hypothesis.try_out(2)
        hypothesis.seconds(2)
    assert len(started) == 1


def test_what_a_refusal_shows_of_a_learners_names_is_plain_and_short():
    model = graph([helper.make_node("\x1b[2J" + "A" * 3000, ["x"], ["y"])])
    with pytest.raises(InputError) as refusal:
        Onnx(model=np.frombuffer(model, dtype=np.uint8)).fits(2, 2)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 400


UNTOUCHED = """
import sys
started = []
sys.addaudithook(lambda event, _: started.append(event) if event in ("subprocess.Popen", "os.fork") else None)
from privada import Policy, Question
from privada.exceptions import ApprovalPending, PolicyError
blob = sys.stdin.buffer.read()
header = Question.peek(blob)
outcomes = []
for policy in (Policy(methods=("cells",), approval=True), Policy(methods=("marginals",), approval=True)):
    try:
        policy.admit_header(header)
    except (PolicyError, ApprovalPending) as error:
        outcomes.append(type(error).__name__)
early = [name for name in ("privada.methods.marginals", "onnx", "onnxruntime") if name in sys.modules]
question = Question.from_bytes(blob)
assert question.digest == header.digest and question.kind == header.kind
question.price
late = [name for name in ("onnx", "onnxruntime") if name in sys.modules]
print(outcomes, early, late, started)
"""


@pytest.mark.parametrize("model", [working(1).tobytes(), b"no protobuf at all"], ids=["valid", "rubbish"])
def test_nothing_of_a_graph_is_parsed_or_run_before_policy_and_approval(model):
    """Not even making the question and its price touches it; before, loading the file parsed it."""
    hypothesis = Onnx(model=np.frombuffer(model, dtype=np.uint8))
    question = OutcomeTables(tables=TABLES, hypothesis=hypothesis, guarantee=PURE)
    done = subprocess.run(
        [sys.executable, "-c", UNTOUCHED],
        input=question.to_bytes(),
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.decode().strip() == "['PolicyError', 'ApprovalPending'] [] [] []"


def scored(nodes, initializers=()):
    """A model whose output of floats is ``y``."""
    return graph(nodes, initializers, output=TensorProto.FLOAT)


HALVES = scored(
    [helper.make_node("Mul", ["x", "half"], ["y"])],
    [floats("half", [0.5])],
)


def test_scores_are_the_models_and_depend_on_their_record_alone():
    made = Onnx(model=np.frombuffer(HALVES, dtype=np.uint8), outputs=2)
    made.fits_scores(2, 2)
    assert np.allclose(made.scores(OTHERS), OTHERS / 2, atol=1e-7)
    assert np.array_equal(made.scores(WITH)[8:], made.scores(OTHERS)[7:])
    assert made.scores(OTHERS[:0]).shape == (0, 2)
    assert made.seconds(2) > 0


def test_a_record_whose_run_fails_has_no_scores_and_the_others_keep_theirs():
    """Looking up a place beyond the table ends the run of one record."""
    table = [helper.make_node("Gather", ["table", "k"], ["y"])]
    blob = aimed(table, [floats("table", [1.5])], at=10**6)
    model = ModelProto.FromString(blob)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    found = wire_onnx.run_scores(model.SerializeToString(), WITH, outputs=1)
    assert np.isnan(found[7]).all()
    assert np.array_equal(np.delete(found, 7, axis=0), np.full((20, 1), 1.5))


@pytest.mark.parametrize(
    ("outputs", "message"),
    [(3, "fails, or passes a limit"), (1, "fails, or passes a limit")],
)
def test_another_number_of_scores_is_refused_before_any_charge(outputs, message):
    made = Onnx(model=np.frombuffer(HALVES, dtype=np.uint8), outputs=outputs)
    with pytest.raises(InputError, match=message):
        made.fits_scores(2, outputs)
    with pytest.raises(InputError, match="Expected an ONNX hypothesis of 2 scores"):
        made.fits_scores(2, 2)


def test_a_model_without_floats_has_no_scores():
    nodes = [helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)]
    made = Onnx(model=np.frombuffer(graph(nodes), dtype=np.uint8), outputs=2)
    with pytest.raises(InputError, match="an output of floats"):
        made.fits_scores(2, 2)


@pytest.mark.parametrize("outputs", [-1, 1.5, 10**9])
def test_a_wrong_number_of_scores_is_named(outputs):
    with pytest.raises(InputError, match="outputs"):
        Onnx(model=np.frombuffer(HALVES, dtype=np.uint8), outputs=outputs)
