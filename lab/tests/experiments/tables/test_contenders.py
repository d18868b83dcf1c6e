"""Rivals see no more than the method, and spend no more."""

import numpy as np
import pytest

from privada.parties.schema import Number
from privada_lab.datasets import table_readers as read
from privada_lab.datasets.tables import TablePair, table_pair
from privada_lab.experiments.tables import CONTENDERS, Case

CANCER = "cancer: smooth to rough"

AREAS = TablePair(  # a regression that needs no data folder, of a table whose pair is for development
    name="cancer: areas, smooth to rough",
    half="development",
    read=read.cancer,
    columns=read.without(read.CANCER, "mean smoothness", "mean area", "worst area"),
    label=Number(name="mean area", low=0, high=2000),
    private=read.above_median("mean smoothness"),
    rows=150,
)


def test_rivals_see_no_more_than_the_method_and_spend_no_more():
    rivals = {each.figure: {rival.name for rival in each.rivals()} for each in CONTENDERS if each.figure}
    assert rivals["reweighting_regressor"] == {"public ridge", "shift", "one sum", "noisy mean", "DP ridge"}
    assert rivals["marginals_regressor"] == {"noisy mean", "DP ridge"}
    counting = {"noisy majority", "DP logistic", "objective perturbation", "noisy counts"}
    assert rivals["marginals_learner"] == counting
    public = {"public logistic", "public majority", "class shares"}
    assert rivals["reweighting_classifier"] == counting | public
    assert rivals["transport"] == {f"transport: {name}" for name in counting}
    assert not any("target" in name or "source" in name for names in rivals.values() for name in names)


@pytest.mark.parametrize("pair", [table_pair(CANCER), AREAS], ids=lambda pair: pair.task)
def test_every_rival_keeps_the_guarantee_of_the_case(pair, monkeypatch):
    """Each release that is made while rivals run is (epsilon, delta) at replace-one, or pure epsilon."""
    from privada.parties.owner import Owner

    split, seen = pair.split(None, 0), []
    answer = Owner.answer
    monkeypatch.setattr(Owner, "answer", lambda *args: seen.append(answer(*args)) or seen[-1])
    for each in CONTENDERS:
        if each.figure or not each.suits(split.pair):
            continue
        case = Case.flipped(split) if each.view == "transport" else Case.of(split)
        budget, before = case.budget(1.5), len(seen)
        found = case.errors(each.run(case, budget).predicted)
        assert np.isfinite(found["error"])
        assert (len(seen) > before) == each.spends
        for release in seen[before:]:
            assert release.guarantee.relation.value == "replace-one"
            assert release.guarantee.epsilon == 1.5
            assert getattr(release.guarantee, "delta", 0.0) <= budget["delta"] == 1 / (10 * len(case.private))


def test_a_flipped_case_tests_on_public_rows_that_it_does_not_show():
    split = table_pair(CANCER).split(None, 0)
    case = Case.flipped(split)
    assert np.array_equal(case.private.X, split.train.X)
    assert len(case.public) + len(case.test) == len(split.source)
    assert not {tuple(row) for row in case.public.X} & {tuple(row) for row in case.test.X}


def test_errors_are_held_to_the_public_range_and_balanced():
    case = Case.of(AREAS.split(None, 0))
    far = case.errors(np.full(len(case.test), 1e9))["error"]
    assert far == pytest.approx(np.mean((2000 - case.test.y) ** 2))
    case = Case.of(table_pair(CANCER).split(None, 0))
    found = case.errors(np.full(len(case.test), "benign"))
    assert found["error"] == pytest.approx(np.mean(case.test.y == "malignant"))
    assert found["balanced"] == 0.5
    assert found["majority"] >= 0.5
