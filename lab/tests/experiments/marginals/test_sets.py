"""The sets: what the paper prints, in one order, and whose runs are enough."""

import pytest

from privada_lab.experiments.marginals import sets

EVERY = (*sets.GENERATED, *sets.CARDIOTOCOGRAMS)


@pytest.mark.parametrize("setting", EVERY, ids=lambda setting: setting.name)
def test_the_papers_row_is_whole_and_in_order(setting):
    row = dict(zip(sets.PRINTED, setting.paper, strict=True))
    assert row["target-trained"] == max(setting.paper)
    assert row["C-EXPRIL"] > row["1DP-C-EXPRIL"]
    assert all(50 < value < 100 for value in setting.paper)


def test_goals_are_above_what_is_printed():
    for setting in sets.GENERATED:
        private = setting.paper[sets.PRINTED.index("1DP-C-EXPRIL")]
        assert private < setting.goal < setting.paper[0]
        if setting.marginal_goal is not None:
            assert private < setting.marginal_goal <= setting.goal


def test_names_differ_and_cardiotocograms_say_their_shift():
    assert len({setting.name for setting in EVERY}) == len(EVERY)
    assert {setting.shift for setting in sets.GENERATED} == {None}
    assert [setting.shift for setting in sets.CARDIOTOCOGRAMS] == ["none", "target", "source"]


def test_a_seed_makes_fresh_rows(small):
    first, again, other = (sets.GENERATED[2].load(seed) for seed in (1, 1, 2))
    assert (first.X == again.X).all()
    assert (first.X != other.X).any()
    assert len(first.source) == 150
