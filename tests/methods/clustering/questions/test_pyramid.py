import numpy as np
import pytest

from privada import Owner
from privada.exceptions import InputError
from privada.methods.clustering.learner.source.posterior import _sum_children
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.parties import Rows, Schema
from privada.parties.answering import answer_rows
from privada.privacy import PureDP

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
        assert np.abs(_sum_children(counts[level + 1]) - counts[level]).max() <= 1


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
