"""The experiment of cells: between guessing and exact counts, within public bounds."""

from privada_lab.experiments import experiment
from privada_lab.experiments.cells import make_task


def test_cells_comes_between_guessing_and_exact_counts():
    tracked = []

    def track(items, what):
        tracked.append(what)
        return items

    *found, picture = experiment("cells").run(runs=3, data=None, track=track)
    figures = {each.figure: each for each in found}
    rank = figures.pop("cells_worst_rank")
    assert 1 <= rank.value <= 4
    for rival in ("noisy majority", "noisy counts", "DP logistic, δ = 1e-05"):
        assert all(rival in each.beside for name, each in figures.items() if "eps" in name)
        assert rival in rank.beside
    value = {name.removeprefix("cells_digits_accuracy_"): each.value for name, each in figures.items()}
    assert set(value) == {"eps0.25", "eps1", "eps4", "majority", "nonprivate"}
    assert value["majority"] + 0.2 < value["eps1"] < value["nonprivate"] + 0.05
    assert all(each.goal is None and each.runs == 3 and each.interval for each in figures.values())
    assert tracked
    lines = {line.name: line for line in picture.series}
    assert lines["ours"].mean == [value[name] for name in ("eps0.25", "eps1", "eps4")]
    assert lines["ours"].role == "ours"
    assert {"noisy majority", "majority class", "exact counts (not private)"} < set(lines)


def test_the_bounds_of_the_task_hold_for_every_possible_image():
    task = make_task(5)
    low, high = task.bounds
    assert (low <= task.X).all()
    assert (high >= task.X).all()
    assert len(task.X) > len(task.X_test) > 250
