"""Trivial rivals: everybody can be asked, each within its budget, and none looks at more than it may."""

from dataclasses import replace

import numpy as np
import pytest

from privada_lab.datasets.domain_pairs import Part
from privada_lab.experiments.rivals import CLASS_RIVALS, NUMBER_RIVALS, PURE_DELTA, Sides, predictions


@pytest.fixture
def sides():
    rng = np.random.default_rng(0)

    def part(n, shift):
        X = rng.uniform(-1, 1, size=(n, 3))
        return Part(X, (X[:, 0] + shift > 0).astype(np.int64))

    return Sides(part(300, 0.0), part(400, 0.2), part(100, 0.2), (-1.0, 1.0), classes=(0, 1))


def test_every_rival_predicts_every_test_row(sides):
    found = dict(predictions(sides, {"epsilon": 2.0, "delta": 1e-5}, labelled=True))
    assert set(found) == {rival.name for rival in CLASS_RIVALS}
    numbers = replace(sides, classes=(), label_bounds=(0.0, 1.0))
    found |= dict(predictions(numbers, {"epsilon": 2.0, "delta": 1e-5}, labelled=True))
    assert set(found) == {rival.name for rival in (*CLASS_RIVALS, *NUMBER_RIVALS)}
    assert all(len(each) == len(sides.test) for each in found.values())


@pytest.mark.parametrize("rival", [*CLASS_RIVALS, *NUMBER_RIVALS], ids=lambda rival: rival.name)
def test_one_that_needs_no_public_labels_does_not_look_at_them(sides, rival):
    blind = Sides(Part(sides.public.X, np.full(len(sides.public), np.nan)), *_rest(sides, rival))
    if rival.labelled:
        with pytest.raises(ValueError, match="NaN|nan|classes|finite|Expected"):
            rival.predict(blind, {"epsilon": 1.0, "delta": 1e-5})
    else:
        assert np.isfinite(rival.predict(blind, {"epsilon": 1.0, "delta": 1e-5})).all()


def _rest(sides, rival):
    classes = () if rival in NUMBER_RIVALS else (0, 1)
    return sides.private, sides.test, sides.bounds, classes


@pytest.mark.parametrize("relation", ["replace-one", "add/remove"])
def test_a_pure_budget_is_kept_or_the_name_says_otherwise(sides, relation, monkeypatch):
    from privada.parties.owner import Owner

    seen, answer = [], Owner.answer
    monkeypatch.setattr(Owner, "answer", lambda *args: seen.append(answer(*args)) or seen[-1])
    names = [name for name, _ in predictions(replace(sides, relation=relation), {"epsilon": 1.5})]
    logistic = f"DP logistic, δ = {PURE_DELTA:g}"
    assert names == ["noisy majority", logistic, "objective perturbation", "noisy counts"]
    for name, release in zip(names, seen, strict=True):
        assert release.guarantee.epsilon == 1.5
        assert getattr(release.guarantee, "delta", 0.0) == (PURE_DELTA if "δ" in name else 0.0)
        expected = "replace-one" if "perturbation" in name else relation
        assert release.guarantee.relation.value == expected


def test_two_classes_alone_can_be_perturbed(sides):
    three = replace(sides, classes=(0, 1, 2))
    assert "objective perturbation" not in dict(predictions(three, {"epsilon": 1.0}))
