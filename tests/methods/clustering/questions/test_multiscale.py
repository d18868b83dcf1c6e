"""Local means at the ends of what floats can hold."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from privada import Owner
from privada.exceptions import InputError
from privada.methods.clustering import LocalMeans, NearestMeans, NeighbourAverages
from privada.methods.clustering.learner.source import sum_children
from privada.methods.clustering.questions.multiscale import GridPyramid
from privada.parties import Rows, Schema
from privada.parties.answering import answer_rows, answerer
from privada.privacy import PureDP
from privada.privacy.accounting import accountant
from tests.methods.clustering.questions.sensitivity import PURE, RHO


@pytest.mark.parametrize("size", [1e-99, 1e-30, 1e30, 1e99])
@pytest.mark.parametrize("moments", ["none", "trace", "full", "pooled"])
def test_no_size_of_the_public_parameters_breaks_the_sensitivity(size, moments):
    """The largest and smallest units, rows on centres, on the edge, and as far as floats go."""
    schema = Schema.of_numbers(bounds=(-1.7e308, 1.7e308), width=2)
    cells = np.array([[0.0, 0.0], [3.0, 0.0]]) * size
    unit = {"guarantee": PureDP(epsilon=1, relation="add/remove")}
    for question in (
        LocalMeans(cells=cells, shells=[size, 1.5 * size], domain=size, moments=moments, **unit),
        NeighbourAverages(targets=cells, t=1, radius=size, **unit),
        NearestMeans(cells=cells, radius=size, **unit),
    ):
        if not -60 < np.log2(size) - 20 < 60 and not isinstance(question, LocalMeans):
            with pytest.raises(InputError):
                question.price
            continue
        for row in ([0, 0], [size, 0], [0.99 * size, 0.1 * size], [1.7e308, -1.7e308], [-1.7e308, 1e-300]):
            seen = {}
            rows = Rows(np.array([row], dtype=float), schema=schema)
            answerer(question)(question, rows, lambda n, v, seen=seen: seen.setdefault(n, v.copy()))
            for name, draw in question.plan.draws.items():
                assert np.abs(draw.grid.values(seen[name])).sum() <= draw.sensitivity * (1 + 1e-12)


def random_pairs(rng, d, count):
    for _ in range(count):
        v, w = rng.normal(size=(2, d))
        yield v / np.linalg.norm(v) * rng.uniform() ** 0.2, w / np.linalg.norm(w) * rng.uniform() ** 0.2
    for angle in np.linspace(0, np.pi, 400):
        turned = np.zeros(d)
        turned[:2] = np.cos(angle), np.sin(angle)
        yield np.eye(d)[0], turned


@pytest.mark.parametrize("moments", ["none", "trace", "full", "pooled"])
@pytest.mark.parametrize("shares", [(0.2, 0.7), (0.2, 0.4), (0.1, 0.1), (0.02, 0.5)])
def test_moves_inside_and_between_shells_are_what_the_pricing_says(moments, shares):
    """privacy.md, section 6.1, replace-one: the supremum by search, not above the bound and near to it."""
    count, total = shares
    rest = {} if moments == "none" else {"moment_share": 1 - count - total}
    question = LocalMeans(
        cells=np.zeros((1, 3)),
        shells=[1.0],
        domain=1.0,
        moments=moments,
        count_share=count,
        guarantee=replace(RHO, relation="replace-one"),
        **rest,
    )
    precision = {name: 1 / draw.scale**2 for name, draw in question.plan.draws.items()}
    two_shells = 2 * sum(precision.values())
    inside = 0.0
    for v, w in random_pairs(np.random.default_rng(0), 3, 3000):
        whole = np.outer(v, v) - np.outer(w, w)
        second = {"none": 0.0, "trace": v @ v - w @ w, "full": whole, "pooled": whole}[moments]
        moved = precision["sums"] * np.sum((v - w) ** 2)
        inside = max(inside, moved + precision.get("moments", 0.0) * np.sum(np.square(second)))
    bound = accountant.gaussian_mu(question.plan.event) ** 2
    assert max(inside, two_shells) <= bound * (1 + 1e-9)
    assert max(inside, two_shells) >= bound * 0.999


def test_the_triangle_has_the_l1_norm_of_the_pricing():
    for d in (1, 2, 5):
        question = LocalMeans(
            cells=np.zeros((1, d)), shells=[1.0], domain=1.0, moments="full", guarantee=PURE
        )
        draw = question.plan.draws["moments"]
        v = np.full(d, 1 / math.sqrt(d))
        packed = np.outer(v, v)[np.triu_indices(d)] * np.where(np.equal(*np.triu_indices(d)), 1, math.sqrt(2))
        assert np.linalg.norm(packed) == pytest.approx(1)
        assert np.abs(packed).sum() == pytest.approx(draw.sensitivity)


def error_of_a_shell(question):
    """What the default shares make least: Wasserstein error to first order, times the count squared."""
    d, draws = question.width, question.plan.draws
    weight = {"none": 0, "trace": (d + 2) / (4 * d), "full": (d + 2) / 4 * d * (d + 1) / 2}[question.moments]
    moments = draws["moments"].variance if "moments" in draws else 0.0
    return draws["counts"].variance + d * draws["sums"].variance + weight * moments


@pytest.mark.parametrize("moments", ["none", "trace", "full"])
@pytest.mark.parametrize("guarantee", [PureDP(epsilon=0.01, relation="add/remove"), RHO], ids=str)
@pytest.mark.parametrize("d", [2, 8])
def test_default_shares_make_the_error_of_a_shell_least(moments, guarantee, d):
    shared = {
        "cells": np.zeros((1, d)),
        "shells": [1.0],
        "domain": 1.0,
        "moments": moments,
        "guarantee": guarantee,
    }
    ours = error_of_a_shell(LocalMeans(**shared))
    for count, moment in product(np.linspace(0.1, 0.6, 12), np.linspace(0.02, 0.85, 30)):
        if count + moment < 0.98:
            rest = {} if moments == "none" else {"moment_share": moment}
            assert ours <= error_of_a_shell(LocalMeans(count_share=count, **rest, **shared)) * (1 + 1e-4)


def test_without_moments_replace_one_has_the_optimum_of_cells():
    """Sums at half of the budget, where moves inside a shell and between two cost the same."""
    shared = {
        "cells": np.zeros((1, 8)),
        "shells": [1.0],
        "domain": 1.0,
        "guarantee": replace(RHO, relation="replace-one"),
    }
    ours = error_of_a_shell(LocalMeans(**shared))
    others = [
        error_of_a_shell(LocalMeans(count_share=share, **shared)) for share in np.linspace(0.05, 0.9, 60)
    ]
    assert ours <= min(others) * (1 + 1e-6)


AR = "add/remove"


def pyramid(epsilon=1000.0, levels=(2, 3, 4), width=2, relation=AR):
    return GridPyramid(
        levels=levels, domain=0.5, width=width, guarantee=PureDP(epsilon=epsilon, relation=relation)
    )


def test_each_row_is_in_one_cell_of_each_level(rehearsal):
    X = np.random.default_rng(0).uniform(-0.6, 0.6, size=(300, 2))
    question, seen = pyramid(), {}
    rows = Rows(X, schema=Schema.of_numbers(bounds=(-1, 1), width=2))
    answer_rows(question, rows, noise=rehearsal, witness=lambda n, m, e: seen.setdefault(n, e))
    assert [int(table.sum()) for table in seen.values()] == [300] * 3
    assert [table.size for table in seen.values()] == [16, 64, 256]


def test_levels_are_nested():
    """The sum over a cell's children at one level is the cell at the level above."""
    X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(500, 2))
    house = Owner(
        X,
        schema=Schema.of_numbers(bounds=(-1, 1), width=2),
        dataset="s",
        budget=PureDP(epsilon=1e3, relation=AR),
    )
    counts = pyramid().counts(house.answer(pyramid()))
    for level in (2, 3):
        assert np.abs(sum_children(counts[level + 1]) - counts[level]).max() <= 1


@pytest.mark.parametrize(("relation", "scale"), [(AR, 3.0), ("replace-one", 6.0)])
def test_a_row_touches_one_count_of_each_level(relation, scale):
    draws = pyramid(epsilon=1.0, relation=relation).plan.draws
    assert {draw.scale for draw in draws.values()} == {scale}


@pytest.mark.parametrize(
    "bad",
    [{"levels": ()}, {"levels": (2, 2)}, {"levels": (0,)}, {"domain": -1}, {"width": 0}, {"levels": (30,)}],
)
def test_bad_pyramids(bad):
    good = {"levels": (1, 2), "domain": 0.5, "width": 2, "guarantee": PureDP(epsilon=1, relation=AR)}
    with pytest.raises(InputError):
        GridPyramid(**(good | bad))
