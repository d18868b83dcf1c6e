"""What bounds the default: one thing changed at a time, on the same runs."""

import pytest

from privada_lab.experiments.marginals import contenders, headline, limits, sets


def test_limits_are_differences_of_the_same_runs(small, monkeypatch):
    monkeypatch.setattr(limits, "SETS", sets.GENERATED[2:3])
    *figures, table, picture = limits.run(runs=3)
    assert picture.places == ("C",)
    assert limits.DEFAULT in picture.methods
    assert [figure.figure for figure in figures] == ["noise_cost_C", "hidden_rows_cost_C"]
    rows = {row[1]: row for row in table.rows}
    assert rows["the default"][3] == "0.00 ± 0.00"
    assert {row[4] for row in table.rows} == {"3"}
    for figure, name in zip(figures, (limits.NOISELESS, limits.KNOWN), strict=True):
        assert rows[name][3].startswith(f"{figure.value:.2f} ")
        low, high = figure.interval
        assert low <= figure.value <= high
    assert not set(range(limits.FIRST, limits.FIRST + 30)) & set(range(headline.FRESH, headline.FRESH + 100))


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_limits_change_one_thing_at_a_time(small, monkeypatch):
    asked = []

    def noted(data, **settings):
        asked.append((data, settings))
        return contenders.learner(data, **settings)

    monkeypatch.setattr(limits, "learner", noted)
    data, setting = sets.GENERATED[2].load(5), sets.GENERATED[2]
    found = limits.measured(data, setting, 5)
    assert all(0 <= value <= 100 for value in found.values())
    cells = {settings["algorithm"].cells for _, settings in asked[1:3]}
    assert len(cells) == 1
    assert [settings.get("epsilon") for _, settings in asked] == [
        None,
        limits.NO_NOISE,
        None,
        None,
        None,
        None,
    ]
    assert [given.source is data.source for given, _ in asked] == [True, True, False, True, True, True]
    assert asked[2][0].source is data.X
    assert {settings["insecure_seed"] for _, settings in asked} == {5}
