"""Bars are shown where they are asked for, and never tell how many runs a random stopping had."""

import io
import warnings

import numpy as np
import pytest
from rich.console import Console

import privada
from privada import CellClassifier, _progress
from privada._progress import hidden, showing, track
from privada.model_selection import PrivateSearchCV

CENTERS = [[0.2, 0.2], [0.8, 0.8]]
X = np.random.default_rng(0).uniform(size=(400, 2))
Y = (X[:, 0] > 0.5).astype(int)
MODEL = {"classes": (0, 1), "bounds": (0, 1), "epsilon": 0.5}
pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")


@pytest.fixture
def added(monkeypatch):
    """What every bar of a block was called, and how many steps it had."""
    from rich.progress import Progress

    seen, add = [], Progress.add_task

    def record(self, description, **more):
        seen.append((description, more["total"]))
        return add(self, description, **more)

    monkeypatch.setattr(Progress, "add_task", record)
    return seen


def quiet():
    return Console(file=io.StringIO(), force_terminal=True)


def test_without_it_nothing_is_written(capsys):
    CellClassifier(CENTERS, **MODEL).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    assert list(track([3, 4], "steps")) == [3, 4]


def test_a_fit_says_what_it_asks(added):
    console = quiet()
    with privada.progress(console):
        CellClassifier(CENTERS, **MODEL).fit(X, Y)
        assert not _progress._BARS.get().tasks  # a bar goes when its work is done
    assert [name for name, _ in added] == ["CellClassifier", "questions answered", "owner: cells.statistics"]
    assert _progress._BARS.get() is None


def test_steps_are_counted_and_drawn():
    console = quiet()
    with privada.progress(console):
        for _ in track(range(3), "public steps"):
            _progress._BARS.get().refresh()
    said = console.file.getvalue()
    assert "public steps" in said
    assert "2/3" in said


def test_a_bar_goes_when_its_work_fails():
    with privada.progress(quiet()):
        with pytest.raises(ZeroDivisionError), showing("work"):
            1 / 0
        assert not _progress._BARS.get().tasks
        with hidden(), showing("secret"):
            assert _progress._BARS.get() is None


@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_a_search_counts_candidates_but_never_random_runs(choice, added):
    grid = {"centers": [CENTERS, CENTERS[:1], [[0.5, 0.1]]]}
    search = PrivateSearchCV(
        CellClassifier(**MODEL), grid, selection_epsilon=0.5, choice=choice, runs=4, random_state=1
    )
    with privada.progress(quiet()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Y)
    names = [name for name, _ in added]
    if choice == "exponential":
        assert ("candidates", 3) in added
        assert names.count("CellClassifier") == 3
    else:
        assert names.count("CellClassifier") == 3  # on generated rows, before anything is charged
        assert names[-2:] == ["questions answered", "owner: model_selection.random_stopping"]


def test_a_pipe_gets_nothing(capsys):
    with privada.progress():
        CellClassifier(CENTERS, **MODEL).fit(X, Y)
    assert capsys.readouterr() == ("", "")
