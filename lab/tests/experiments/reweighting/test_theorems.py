"""Theorems as numbers, on generated domains."""

from privada_lab.experiments.reweighting.theorems import bounds_table


def test_every_theorem_has_its_rows_and_bounds_hold_what_is_found(pair, two_classes):
    rows = bounds_table(pair, two_classes).rows
    assert [row[0][0] for row in rows] == ["2"] * 6 + ["4"] * 3 + ["5"]
    assert float(rows[-1][4]) > float(rows[-1][5].removeprefix("test loss "))
    by_epsilon = [float(row[4]) for row in rows if row[0].startswith("4")]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
