"""The questions about labels and outcomes: sensitivities, prices, plans and what is refused."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from privada import Owner, Schema
from privada.exceptions import BudgetError, InputError
from privada.methods.cells import Bins, GridCells
from privada.methods.marginals import (
    Constant,
    HypothesisChoice,
    LabelHistogram,
    MarginalsDescent,
    Network,
    OutcomeTables,
    SquaredErrors,
    linear,
)
from privada.methods.marginals.example import SLOPE, TABLES
from privada.parties import Category, Number, Rows
from privada.parties.answering import answer_rows
from privada.privacy import ZCDP, ApproxDP, Ledger, OwnerKey, PureDP, Question

PURE = PureDP(epsilon=1, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Category(name="label", values=(0, 1)))


def exact(question, X, y, schema=SCHEMA):
    """What the answerer hands to its draws, before noise."""
    seen = {}
    from privada.parties.answering import answerer

    answerer(question)(question, Rows(X, y=y, schema=schema), lambda n, v: seen.setdefault(n, np.array(v)))
    return seen


@pytest.mark.parametrize("count", ["errors", "signed", "classes", "labels", "rows"])
def test_a_record_moves_each_table_by_exactly_one(count):
    """privacy.md, section 2 (d): add or remove one row, sum over all entries, is the number of tables."""
    rng = np.random.default_rng(0)
    hypothesis = None if count in {"labels", "rows"} else SLOPE
    question = OutcomeTables(tables=TABLES, hypothesis=hypothesis, count=count, guarantee=PURE)
    for _ in range(50):
        X, y = rng.uniform(-0.2, 1.2, size=(9, 2)), rng.integers(0, 2, size=9)
        whole, less = exact(question, X, y), exact(question, X[1:], y[1:])
        moved = [np.abs(whole[name] - less[name]).sum() for name in question.names()]
        assert moved == [1, 1]


def test_tables_count_what_they_say():
    X, y = np.array([[0.1, 0.9], [0.1, 0.1], [0.9, 0.9]]), np.array([1, 1, 0])
    errors = OutcomeTables(tables=TABLES[:1], hypothesis=SLOPE, guarantee=PURE)
    assert exact(errors, X, y)["table.0"].tolist() == [[1, 1], [0, 0], [1, 0]]
    signed = replace(errors, count="signed")
    assert exact(signed, X, y)["table.0"].tolist() == [0, 0, 1]
    classes = replace(errors, count="classes")
    assert exact(classes, X, y)["table.0"][0].tolist() == [[0, 0], [1, 1]]
    rows = replace(errors, count="rows", hypothesis=None)
    assert exact(rows, X, y)["table.0"].tolist() == [2, 0, 1]


def test_a_signed_table_is_priced_for_a_label_that_flips_in_its_bin():
    """Under replace-one a flip moves errors minus correct by 2; joint counts move by two ones."""
    rho = ZCDP(rho=0.5, relation="replace-one")
    joint = OutcomeTables(tables=TABLES[:1], hypothesis=SLOPE, guarantee=rho)
    signed = replace(joint, count="signed")
    ratio = signed.plan.draws["table.0"].scale / joint.plan.draws["table.0"].scale
    assert ratio == pytest.approx(np.sqrt(2), rel=1e-6)


def test_noise_grows_with_features_but_not_for_cells():
    tables = tuple(Bins(feature=j, edges=np.array([0.5])) for j in range(22))
    wide = OutcomeTables(tables=tables, hypothesis=SLOPE, guarantee=PURE)
    assert wide.plan.draws["table.0"].scale == pytest.approx(22)
    cells = OutcomeTables(tables=tables[:1], count="labels", guarantee=PURE)
    assert cells.plan.draws["table.0"].scale == 1


def test_an_empty_bin_is_a_noisy_number(rehearsal):
    question = OutcomeTables(tables=TABLES, hypothesis=SLOPE, guarantee=PURE)
    rows = Rows(np.zeros((0, 2)), y=np.zeros(0, int), schema=SCHEMA)
    answers = [answer_rows(question, rows, noise=rehearsal)["table.0"] for _ in range(40)]
    assert np.isfinite(answers).all()
    assert (np.std(answers, axis=0) > 0).all()
    assert np.array_equal(answers, np.round(answers))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"round": 2, "rounds": 2}, "the number that was planned"),
        ({"hypothesis": None}, "Expected a hypothesis"),
        ({"count": "rates"}, "Expected count to be one of"),
        ({"tables": ()}, "at least one partition"),
        ({"hypothesis": print}, "Expected hypothesis to be a Hypothesis"),
        ({"n_classes": 1}, "Expected n_classes"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_by_name(wrong, message):
    with pytest.raises(InputError, match=message):
        OutcomeTables(**({"tables": TABLES, "hypothesis": SLOPE, "guarantee": PURE} | wrong))


@pytest.mark.parametrize("edges", [[0.5, 0.5], [0.6, 0.3], [np.nan], []])
def test_bins_that_do_not_partition_the_line_are_refused(edges):
    with pytest.raises(InputError, match="bins do not overlap"):
        Bins(feature=0, edges=np.array(edges))


def test_what_does_not_fit_the_owner_is_refused_before_anything_is_charged():
    X, y = np.full((4, 2), 0.5), np.array([0, 1, 0, 1])
    owner = Owner(X, y=y, schema=SCHEMA, dataset="rows", budget=PURE)
    wrong = (
        OutcomeTables(tables=TABLES, hypothesis=linear([[1.0]] * 3, [0.0]), guarantee=PURE),
        OutcomeTables(tables=TABLES, hypothesis=Constant(code=2), guarantee=PURE),
        OutcomeTables(tables=TABLES, hypothesis=SLOPE, n_classes=3, guarantee=PURE),
        OutcomeTables(tables=(Bins(feature=5, edges=np.array([0.5])),), hypothesis=SLOPE, guarantee=PURE),
        SquaredErrors(tables=TABLES, hypothesis=SLOPE, largest=1.0, guarantee=PURE),
    )
    for question in wrong:
        with pytest.raises(InputError):
            owner.answer(question)
    assert len(list(owner.ledger.lines("rows"))) == 1  # the budget alone
    asked = OutcomeTables(tables=TABLES, hypothesis=SLOPE, guarantee=PURE)
    owner.answer(asked)
    with pytest.raises(BudgetError):
        owner.answer(replace(asked, salt="another"))


def test_a_choice_is_not_sold_for_epsilon_and_delta():
    with pytest.raises(InputError, match="asked for epsilon or rho"):
        HypothesisChoice(
            candidates=(SLOPE, Constant(code=0)),
            guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"),
        )


def test_a_choice_prefers_what_is_right(rehearsal):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = SLOPE.codes(X)
    question = HypothesisChoice(candidates=(Constant(code=0), SLOPE, Constant(code=1)), guarantee=PURE)
    assert answer_rows(question, Rows(X, y=y, schema=SCHEMA), noise=rehearsal)["choice"].tolist() == [1]


@pytest.mark.parametrize(
    "guarantee",
    [
        PURE,
        ZCDP(rho=0.5, relation="replace-one"),
        ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"),
        PureDP(epsilon=1, relation="replace-one"),
    ],
    ids=str,
)
def test_squared_errors_are_clipped_and_travel(guarantee):
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Number(name="y", low=-1e6, high=1e6))
    question = SquaredErrors(
        tables=TABLES, hypothesis=linear([[1.0], [0.0]], [0.0]), largest=4.0, guarantee=guarantee
    )
    question.fits(schema)
    assert Question.from_bytes(question.to_bytes()) == question
    X, y = np.array([[0.1, 0.1], [0.2, 0.5]]), np.array([1.1, 1e6])
    seen = exact(question, X, y, schema)
    assert np.ldexp(seen["squares.0"], -20).tolist() == [pytest.approx(1.25, abs=1e-5), 0.0, 0.0]
    alone = exact(question, X[:1], y[:1], schema)
    assert np.abs(seen["squares.1"] - alone["squares.1"]).sum() <= 2**20


@pytest.mark.parametrize("kind", ["outcomes", "squares"])
def test_a_round_of_a_plan_is_delivered_again_and_cannot_be_taken_by_others(kind, tmp_path):
    """Whoever asks the same gets the same, whatever process answers; another question of the plan's name,
    such as one of next to no epsilon by somebody who saw it, is a question of its own and pays for itself.
    """
    number = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Number(name="y", low=0, high=1))
    schema, y = (SCHEMA, [0, 1] * 10) if kind == "outcomes" else (number, [0.0, 1.0] * 10)
    make = OutcomeTables if kind == "outcomes" else partial(SquaredErrors, largest=1.0)
    hypotheses = [linear([[slope], [0.0]], [0.5]) for slope in (1.0, -1.0)]
    rounds = [
        make(tables=TABLES, hypothesis=each, round=at, rounds=2, salt="plan", guarantee=PURE)
        for at, each in enumerate(hypotheses)
    ]
    settings = {"schema": schema, "dataset": "rows", "budget": PureDP(epsilon=9, relation="add/remove")}
    key, rows = OwnerKey.generate(), np.full((20, 2), 0.5)
    squatter = replace(rounds[0], hypothesis=hypotheses[1], guarantee=replace(PURE, epsilon=1e-6))
    with Ledger.open(tmp_path / "ledger.db", key) as ledger:
        ledger.open_budget("rows", settings["budget"])
        owner = Owner(rows, y=y, ledger=ledger, **settings)
        owner.answer(squatter)
        first = owner.answer(rounds[0])
        assert ledger.spent("rows").epsilon == pytest.approx(1.0, rel=1e-5)
    with Ledger.open(tmp_path / "ledger.db", key) as ledger:
        owner = Owner(rows, y=y, ledger=ledger, **settings)
        assert owner.answer(rounds[0]).signature == first.signature
        owner.answer(rounds[1])
        owner.answer(replace(rounds[0], salt="another plan"))
        assert ledger.spent("rows").epsilon == pytest.approx(3.0, rel=1e-5)


def test_an_importance_query_is_a_turn_of_its_own():
    first = OutcomeTables(tables=TABLES, count="rows", rounds=2, salt="plan", guarantee=PURE)
    assert first.turn != replace(first, count="errors", hypothesis=SLOPE).turn
    assert replace(first, rounds=1).turn == ""


WIDE = Schema.of_numbers(bounds=(0.0, 1e300), width=2, label=Category(name="label", values=(0, 1)))
STEEP = {"spread": np.full(2, 1e-199), "limit": 1e189, "constant": 0.0}


def descent(**more):
    """A descent of two steps, whose second one starts where the first, noised, has led."""
    settings = {"centre": np.zeros(2), "spread": np.ones(2), "limit": 3.0, "constant": 0.3}
    settings |= {"loss": "softmax", "outputs": 2, "bound": 0.5, "size": 4, "steps": 2, "step_size": 1.0}
    return MarginalsDescent(**settings | {"guarantee": ZCDP(rho=1, relation="add/remove")} | more)


def test_descents_beyond_floats_do_not_fail_and_a_row_adds_no_more_than_the_bound():
    """Only rows far out have scores that are no number: one of them would tell itself by a failure."""
    question = descent(**STEEP)
    X, y = np.array([[0.1, 0.1], [0.2, 0.7], [1e300, 1e300], [1e299, 0.0]]), np.array([0, 1, 0, 1])
    for kept in (slice(0, 2), slice(0, 3), slice(0, 4)):
        owner = Owner(X[kept], y=y[kept], schema=WIDE, dataset="rows", budget=question.guarantee)
        assert owner.answer(question)["gradient_1"].shape == (3, 2)
    step = question.plan.draws["gradient_0"].grid.step
    steps = [exact(question, X[:n], y[:n], WIDE)["gradient_0"] for n in range(1, 5)]
    for less, more in pairwise(steps):
        assert np.linalg.norm((more - less).astype(float)) * step <= 0.5


def test_what_a_row_adds_to_a_descent_does_not_depend_on_the_rows_beside_it():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(53, 2)), rng.integers(0, 2, size=53)
    question = descent(steps=1)
    whole = exact(question, X, y)["gradient_0"]
    alone = sum(exact(question, X[i : i + 1], y[i : i + 1])["gradient_0"] for i in range(53))
    assert np.array_equal(whole, alone)


def test_answers_to_all_questions_over_tables_have_one_limit_of_size():
    grid = GridCells(factors=tuple(Bins(feature=j, edges=np.linspace(0.1, 0.9, 3000)) for j in range(2)))
    for tables, number in (((grid,) * 6, 54036006), ((grid,) * 3, 54036006)):
        asked = {"tables": tables, "guarantee": PURE}
        with pytest.raises(InputError, match=f"at most 50000000 numbers, got {number}"):
            if len(tables) == 6:
                OutcomeTables(**asked, count="rows")
            else:
                SquaredErrors(**asked, hypothesis=linear([[0.0], [0.0]], [0.0]), largest=1.0)


@pytest.mark.parametrize("hypothesis", [None, Constant(code=1)], ids=["none", "constant"])
def test_squared_errors_are_of_a_network_alone(hypothesis):
    with pytest.raises(InputError, match="Expected hypothesis to be a Network with one output"):
        SquaredErrors(tables=TABLES, hypothesis=hypothesis, largest=1.0, guarantee=PURE)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("largest", [1e-320, 1.0, 1e308])
def test_squared_errors_beyond_floats_are_one(largest):
    """Weights, labels and bounds as large as floats go: no warning, no failure, at most 1 a row."""
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Number(name="y", low=-1.7e308, high=1.7e308))
    last = (np.array([[1.7e308], [-1e308]]), np.zeros(1))
    steep = Network(layers=((np.full((2, 2), 1.7e308), np.zeros(2)), last))
    question = SquaredErrors(tables=TABLES[:1], hypothesis=steep, largest=largest, guarantee=PURE)
    X, y = np.array([[0.1, 0.1], [0.9, 0.9], [0.0, 0.0], [0.5, 0.0]]), np.array([1.7e308, -1.7e308, 0.0, 1.0])
    steps = [exact(question, X[:n], y[:n], schema)["squares.0"] for n in range(1, 5)]
    for less, more in pairwise(steps):
        assert 0 <= (more - less).sum() <= 2**20
    assert (steps[1] - steps[0]).sum() == 2**20


QUESTION = SquaredErrors(
    tables=(Bins(feature=0, edges=np.array([0.5])),),
    hypothesis=linear([[2.0]], [0.0]),
    largest=1.0,
    guarantee=PureDP(epsilon=1.0, relation="add/remove"),
)


def test_a_number_is_accepted():
    QUESTION.fits(Schema.of_numbers(bounds=(0, 1), width=1, label=Number(name="y", low=0, high=2)))


@pytest.mark.parametrize("label", [None, Category(name="y", values=(0, 1))])
def test_any_other_label_is_refused_before_the_charge(label):
    """Categories have had bounds since they can be ordered; they are no numbers for that."""
    with pytest.raises(InputError, match="a numeric label"):
        QUESTION.fits(Schema.of_numbers(bounds=(0, 1), width=1, label=label))


RHO = ZCDP(rho=0.5, relation="add/remove")


def test_a_schema_without_a_number_is_refused():
    question = LabelHistogram(low=0.0, high=9.0, bins=4, guarantee=RHO)
    with pytest.raises(InputError, match="numeric label"):
        question.fits(Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=None))


@pytest.mark.parametrize("wrong", [{"low": 9.0}, {"bins": 1}, {"high": np.inf}], ids=str)
def test_a_histogram_needs_bins_between_bounds(wrong):
    with pytest.raises(InputError):
        LabelHistogram(**{"low": 0.0, "high": 9.0, "bins": 4, "guarantee": RHO} | wrong)
