"""The price of cells: sensitivities by brute force, splits against their optimum."""

import math
from itertools import product

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.cells import Bins, CellStatistics, GridCells, NearestCells
from privada.methods.cells.owner import answer
from privada.parties import Rows, Schema
from privada.parties.schema import Category
from privada.privacy import ZCDP, ApproxDP, PureDP, Unit
from privada.privacy.accounting import accountant

CENTERS = np.array([[-0.5, 0.0], [0.5, 0.0]])
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=2, label=Category(name="y", values=(0, 1)))
EXTREMES = np.array(
    [[-1, -1], [1, 1], [1, -1], [0, 0], [-0.5, 0], [0.5, 0], [0.0, 1.0], [0.3333, -0.7777], [1e-9, 1e-9]]
)


def exact(question, X, y):
    """The integers that are noised, in value units."""
    seen = {}

    def draw(name, steps):
        seen[name] = steps.astype(float) * question.plan.draws[name].grid.step
        return seen[name]

    answer(question, Rows(np.reshape(X, (-1, 2)), schema=SCHEMA, y=np.asarray(y, dtype=int)), draw)
    return seen


def questions():
    for guarantee, by_label, recentred, tables in product(
        (
            PureDP(epsilon=1, relation="add/remove"),
            PureDP(epsilon=1, relation="replace-one"),
            ZCDP(rho=0.5, relation="add/remove"),
            ApproxDP(epsilon=2, delta=1e-5, relation="replace-one"),
        ),
        (None, 2),
        (False, True),
        (
            (NearestCells(centers=CENTERS),),
            (NearestCells(centers=CENTERS), NearestCells(centers=CENTERS[::-1])),
        ),
    ):
        yield CellStatistics(
            tables=tables, n_classes=by_label, radius=0.8, recentred=recentred, width=2, guarantee=guarantee
        )


@pytest.mark.parametrize("question", list(questions()))
def test_no_neighbour_moves_further_than_the_plan_says(question):
    plan, replaces = question.plan, question.guarantee.relation.value == "replace-one"
    base_X, base_y = EXTREMES[:4], [0, 1, 0, 1]
    worst = 0.0
    for row, label in product(EXTREMES, (0, 1)):
        here = exact(question, np.vstack([base_X, row]), [*base_y, label])
        if replaces:
            others = [(np.vstack([base_X, r]), [*base_y, c]) for r, c in product(EXTREMES, (0, 1))]
        else:
            others = [(base_X, base_y)]
        for X, y in others:
            there = exact(question, X, y)
            worst = max(worst, loss(plan, here, there))
    allowed = plan.epsilon if isinstance(question.guarantee, PureDP) else accountant.gaussian_mu(plan.event)
    assert worst <= allowed * (1 + 1e-9)
    assert worst >= allowed * 0.8, "the bound should be nearly attained"


def loss(plan, here, there):
    """Joint privacy loss of all draws: L1 over scale for Laplace, L2 over σ for Gaussian."""
    moves = {name: (here[name] - there[name]).ravel() for name in here}
    if plan.epsilon is not None:
        each = [np.abs(moves[name]).sum() / draw.scale for name, draw in plan.draws.items()]
        return sum(each)
    return math.sqrt(
        sum((np.linalg.norm(moves[name]) / draw.scale) ** 2 for name, draw in plan.draws.items())
    )


def test_each_record_is_in_exactly_one_cell_of_each_table():
    question = CellStatistics(
        tables=(NearestCells(centers=np.vstack([CENTERS, CENTERS])), Bins(feature=0, edges=np.array([0.0]))),
        guarantee=PureDP(epsilon=1, relation="add/remove"),
    )
    X = np.vstack([EXTREMES, EXTREMES])
    seen = exact(question, X, np.zeros(len(X)))
    assert seen["counts.0"].sum() == seen["counts.1"].sum() == len(X)


def test_an_outlier_changes_no_more_than_anyone():
    question = CellStatistics(
        tables=(NearestCells(centers=CENTERS),),
        radius=0.5,
        width=2,
        guarantee=PureDP(epsilon=1, relation="add/remove"),
    )
    far = exact(question, np.array([[1e6, -1e6]]), [0])
    assert np.linalg.norm(far["sums"]) <= 0.5
    assert far["counts"].sum() == 1


def test_shifting_the_domain_changes_nothing_when_cells_are_recentred():
    shift = np.array([96.0, 96.0])  # exact in binary, so the residuals are the same to the last bit
    rows = np.round(EXTREMES * 64) / 64
    asked = {}
    for name, offset in (("here", 0), ("there", shift)):
        question = CellStatistics(
            tables=(NearestCells(centers=CENTERS + offset),),
            radius=0.5,
            recentred=True,
            width=2,
            guarantee=ZCDP(rho=1, relation="add/remove"),
        )
        schema = Schema.of_numbers(bounds=(-200, 200), width=2)
        seen = {}
        answer(question, Rows(rows + offset, schema=schema), lambda n, s, seen=seen: seen.setdefault(n, s))
        asked[name] = seen
    for key in asked["here"]:
        assert np.array_equal(asked["here"][key], asked["there"][key])


def test_the_split_is_the_optimum_of_the_specification():
    """privacy.md, section 1 (c): d = 8, R = 1/2, MSE n² of 62.5/ε² (Laplace) and 3.66/(2ρ) (Gaussian)."""
    cells = (NearestCells(centers=np.zeros((1, 8))),)
    pure = CellStatistics(
        tables=cells, radius=0.5, width=8, guarantee=PureDP(epsilon=1, relation="add/remove")
    ).plan.draws
    mse = 2 * (8 * pure["sums"].scale ** 2 + 0.25 * pure["counts"].scale ** 2)
    assert mse == pytest.approx(62.5, abs=0.1)
    concentrated = CellStatistics(
        tables=cells, radius=0.5, width=8, guarantee=ZCDP(rho=0.5, relation="add/remove")
    ).plan.draws
    mse = 8 * concentrated["sums"].scale ** 2 + 0.25 * concentrated["counts"].scale ** 2
    assert mse == pytest.approx(3.66, abs=0.01)


@pytest.mark.parametrize("by_label", [None, 2])
def test_replace_one_has_an_optimum_of_its_own(by_label):
    """privacy.md, section 1 (c), RO: the same-cell term dominates the add/remove split (2.95 ρ at d = 8)."""

    def error(**more):
        draws = CellStatistics(
            tables=(NearestCells(centers=np.zeros((1, 8))),),
            radius=0.5,
            width=8,
            n_classes=by_label,
            guarantee=ZCDP(rho=1, relation="replace-one"),
            **more,
        ).plan.draws
        return 8 * draws["sums"].scale ** 2 + 0.25 * draws["counts"].scale ** 2

    others = [error(count_share=share) for share in np.linspace(0.05, 0.9, 60)]
    assert error() <= min(others) * (1 + 1e-6)
    if by_label is None:
        assert error() == pytest.approx(2 * 0.25 * 9, rel=1e-3)
        assert error() < 0.85 * 3.66 * 2.95 / 2, "better than the add/remove split, priced under replace-one"


def test_a_person_multiplies_the_reach():
    guarantee = PureDP(epsilon=1, relation="add/remove", unit=Unit(name="person", max_rows=4))
    question = CellStatistics(tables=(NearestCells(centers=CENTERS),), guarantee=guarantee)
    assert question.plan.draws["counts"].scale == 4


@pytest.mark.parametrize(
    "bad",
    [
        {"tables": ()},
        {"tables": ("cells",)},
        {"n_classes": 1},
        {"radius": -1.0, "width": 2},
        {"radius": 1.0},
        {"recentred": True},
        {"count_share": 0.5},
        {"radius": 1.0, "width": 2, "count_share": 1.5},
        {"tables": (Bins(feature=0, edges=np.array([0.0])),), "radius": 1.0, "width": 2, "recentred": True},
        {"guarantee": 1.0},
        {"salt": "x" * 201},
    ],
)
def test_bad_questions_are_refused_by_name(bad):
    good = {"tables": (NearestCells(centers=CENTERS),), "guarantee": PureDP(epsilon=1, relation="add/remove")}
    with pytest.raises(InputError):
        CellStatistics(**(good | bad))


def test_a_small_file_cannot_ask_for_more_than_an_owner_can_hold():
    bins = Bins(feature=0, edges=np.arange(99.0))
    grids = tuple(GridCells(factors=(bins,) * 3) for _ in range(60))
    pure = PureDP(epsilon=1, relation="add/remove")
    CellStatistics(tables=grids[:50], guarantee=pure)
    for more in ({"tables": grids}, {"tables": grids[:40], "n_classes": 2}):
        with pytest.raises(InputError, match="at most 50000000 numbers"):
            CellStatistics(guarantee=pure, **more)
    with pytest.raises(InputError, match="at most 50000000 numbers"):
        CellStatistics(tables=grids[:10], radius=1.0, width=5, guarantee=pure)


@pytest.mark.parametrize(("kind", "share"), [(PureDP, 1e-300), (PureDP, 1 - 2.0**-53), (ZCDP, 1e-300)])
def test_a_share_that_cannot_be_drawn_is_refused_before_the_charge(kind, share):
    guarantee = kind(relation="add/remove", **{"epsilon" if kind is PureDP else "rho": 1.0})
    question = CellStatistics(
        tables=(NearestCells(centers=CENTERS),), radius=1.0, width=2, count_share=share, guarantee=guarantee
    )
    with pytest.raises(InputError, match="grid steps"):
        _ = question.price
