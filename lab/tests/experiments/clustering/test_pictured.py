"""The picture of a choice."""

from privada_lab.datasets.source_target import synthetic
from privada_lab.experiments.clustering.contenders import BUDGETS
from privada_lab.experiments.clustering.pictured import picture, picture_set


def test_the_picture_has_the_source_the_target_and_what_was_chosen():
    shown = picture(synthetic(3, seed=1, source_size=500, target_size=80), BUDGETS["pure"])
    assert [len(layer.points) for layer in shown.layers[-2:]] == [8, 8]
    assert len(shown.table().rows) > 580


def test_a_set_is_its_source_and_its_target():
    pair = synthetic(1, seed=1, source_size=50, target_size=8)
    shown = picture_set(pair)
    assert [len(layer.points) for layer in shown.layers] == [50, 8]
    assert "synthetic 1" in shown.title
