"""Clustering in a declarative study."""

import numpy as np
import pytest

from privada import Owner
from privada._toml import Section
from privada.exceptions import BudgetError, PrivadaError
from privada.methods.clustering import NearestMeans
from privada.methods.clustering.method import Clustering
from privada.parties import Schema, run
from privada.privacy import ZCDP

BUDGET = ZCDP(rho=2.0, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(-1.0, 1.0), width=2)


def made(folder, **keys):
    target = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 2))
    np.savetxt(folder / "target.csv", target, delimiter=",")
    table = {"target": "target.csv", "n_centers": 4, "norm_bound": 1.0} | keys
    table = {key: value for key, value in table.items() if value is not None}
    section = Section(table, name="study.toml", text="")
    return Clustering.inquire(section, schemas={"clinic": SCHEMA}, guarantee=BUDGET, home=folder), target


def test_a_share_for_the_bound_is_asked_for_and_paid_within_the_budget(tmp_path):
    study, _ = made(tmp_path, bound_share=0.2, bound_neighbours=5)
    far = np.full((300, 2), 0.6)  # on top of the target a true bound may be 0
    owner = Owner(far, schema=SCHEMA, dataset="s", budget=BUDGET)
    choice = run(study, {"clinic": owner})
    assert sum(line.kind == "charge" for line in owner.ledger.lines("s")) == 2
    assert 0 < choice.to_dict()["cost_bound"] < 1


def test_a_bound_that_cannot_be_paid_beside_the_rest_is_refused_before_anything_is_charged(tmp_path):
    study, _ = made(tmp_path, bound_share=0.2, bound_neighbours=5)
    small = ZCDP(rho=1.9, relation="add/remove")
    owner = Owner(np.full((300, 2), 0.6), schema=SCHEMA, dataset="s", budget=small)
    with pytest.raises(BudgetError, match="all questions together"):
        run(study, {"clinic": owner})
    assert owner.ledger.spent("s") is None


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"bound_share": 1.5}, "bound_share"),
        ({"bound_share": 0.1, "bound_neighbours": 0}, "bound"),
        ({"norm_bound": -1}, "norm_bound"),
        ({"norm_bound": None}, "norm_bound"),
        ({"algorithm": "best"}, "algorithm"),
        ({"question": "none.clq"}, "question"),
    ],
)
def test_wrong_keys_are_named(tmp_path, keys, name):
    with pytest.raises(PrivadaError, match=name):
        made(tmp_path, **keys)


def test_the_ball_of_0_2_is_read_and_asks_the_same(tmp_path):
    study, _ = made(tmp_path)
    with pytest.warns(DeprecationWarning, match="radius= is now norm_bound="):
        old, _ = made(tmp_path, norm_bound=None, radius=1.0)
    assert [ask.question.digest for ask in old.asks] == [ask.question.digest for ask in study.asks]


def test_a_question_of_a_file_is_asked_if_it_leaves_the_bound_its_share(tmp_path):
    _, target = made(tmp_path)
    greedy = NearestMeans(cells=target[:9], radius=1.0, guarantee=BUDGET)
    greedy.save(tmp_path / "greedy.question")
    study, _ = made(tmp_path, question="greedy.question")
    assert [ask.question.digest for ask in study.asks] == [greedy.digest]
    with pytest.raises(PrivadaError, match="question: Expected a question that costs at most"):
        made(tmp_path, question="greedy.question", bound_share=0.1)
