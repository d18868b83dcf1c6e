import pytest

from privada.report.exhibit import Curves
from privada_lab.experiments.summarization.headline import TRIVIAL, _sizes_curve, run
from privada_lab.experiments.summarization.market import SIZES
from privada_lab.experiments.summarization.scores import Scores


def test_what_needs_no_data_is_always_there():
    *figures, picture = run(runs=1)
    assert isinstance(picture, Curves)
    names = {figure.figure for figure in figures}
    assert {"printed_true_epsilon_validation_replace_one", "rounds_owners_asked_of_4"} <= names


def test_errors_are_drawn_against_the_size_of_the_summary():
    scores = Scores()
    for method in ("ours", "greedy", *TRIVIAL):
        for p in SIZES:
            for value in (1 / p, 3 / p):
                scores.add(method, p, 4, mmd2=value)
    ours, *others = _sizes_curve(scores, "a shift").series
    assert ours.role == "ours"
    assert ours.mean == pytest.approx([2 / p for p in SIZES])
    assert {line.name for line in others} == {"greedy", *TRIVIAL}
