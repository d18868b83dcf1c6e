"""How far rows of a shell move its statistics, and how the budget is split."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from privada.methods.clustering import LocalMeans
from privada.privacy import PureDP
from privada.privacy.accounting import accountant
from tests.methods.clustering.questions.sensitivity import PURE, RHO


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
