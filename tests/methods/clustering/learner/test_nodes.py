"""Nodes of a public network: cells, what is asked of them, and what is chosen beside a private source."""

import itertools
import warnings

import numpy as np
import pytest

from privada import Owner
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.clustering import NodeCells, learn_nodes
from privada.methods.clustering.learner.search import GivenProblem, best_of
from privada.parties import Schema
from privada.parties.protocol import drive
from privada.privacy import PureDP

N = 60
STEPS = np.abs(np.subtract.outer(np.arange(N), np.arange(N))).astype(float)
RING = np.minimum(STEPS, N - STEPS)
PURE = PureDP(epsilon=1, relation="add/remove")


def chosen(source, *, n_centers=3, budget=PURE, count=6, target=None):
    cells = NodeCells.of(RING, count)
    schema = Schema.of_numbers(bounds=(0, N - 1), width=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        owner = Owner(
            cells.places(source)[:, None],
            schema=schema,
            dataset="members",
            budget=budget,
            allow_empty=True,
            insecure_seed=1,  # in one run of twenty a cell without a row may pass
        )
    nodes = np.arange(N) if target is None else target
    learner = learn_nodes("a", RING, nodes, cells, n_centers=n_centers, guarantee=budget)
    return drive(learner, lambda ask: owner.answer(ask.question))


def test_cells_hold_every_node_once_and_places_lead_back():
    cells = NodeCells.of(RING, 7)
    assert sorted(np.concatenate(cells.members()).tolist()) == list(range(N))
    assert cells.sizes.sum() == N
    places = cells.places(np.arange(N))
    assert np.array_equal(cells.order[places.astype(int)], np.arange(N))
    (table,) = cells.question(PURE).tables
    for at, nodes in enumerate(cells.members()):
        assert set(table.assign(cells.places(nodes)[:, None]).tolist()) == {at}
    assert cells.question(PURE).plan.draws["counts"].scale == 1.0, "a row is in one cell"


def test_centres_are_chosen_where_the_source_is_not():
    choice = chosen(np.repeat(np.arange(0, 30), 40), count=20)  # the cost is that of rows spread over cells
    assert ((choice.nodes >= 28) & (choice.nodes < 60)).all()
    true = np.minimum(RING[:, :30].min(axis=1), RING[:, choice.nodes].min(axis=1)).mean()
    assert true <= choice.cost_bound
    assert true == pytest.approx(choice.cost, abs=0.7)


def test_without_a_source_the_target_alone_decides():
    choice = chosen(np.array([], dtype=int))
    assert choice.cost_bound >= choice.cost
    assert len(set(choice.nodes.tolist())) == 3
    assert RING[:, choice.nodes].min(axis=1).mean() == pytest.approx(5.0, abs=0.4), "three on a ring of 60"


def test_the_solver_takes_any_symmetric_matrix():
    rng = np.random.default_rng(0)
    D = rng.uniform(1, 2, size=(14, 14))
    D = np.triu(D, 1) + np.triu(D, 1).T
    caps = rng.uniform(0.5, 3, size=14)
    found = best_of(GivenProblem(D, caps), 3, 4, 1000)

    def cost(each):
        return np.minimum(caps, D[:, list(each)].min(axis=1)).sum()

    best = min(cost(each) for each in itertools.combinations(range(14), 3))
    assert cost(found) <= best * 1.02


@pytest.mark.parametrize(
    ("distances", "target", "n_centers", "message"),
    [
        (RING[:5], [0, 1], 1, "symmetric"),
        (RING + np.eye(N), [0, 1], 1, "diagonal"),
        (RING, [0, 0], 1, "different nodes"),
        (RING, [0, 60], 1, "0 to 59"),
        (RING, [0, 1], 2, "n_centers"),
    ],
)
def test_mistakes_are_named_before_anything_is_asked(distances, target, n_centers, message):
    with pytest.raises(InputError, match=message):
        learn_nodes("a", distances, target, NodeCells.of(RING, 4), n_centers=n_centers, guarantee=PURE)


def test_one_cell_says_nothing():
    with pytest.raises(InputError, match="two cells"):
        NodeCells.of(RING, 1).question(PURE)
