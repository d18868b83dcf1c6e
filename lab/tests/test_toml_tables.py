"""Tables in TOML files."""

from privada_lab.toml_tables import read_tables


def test_lists_become_tuples_at_every_depth(tmp_path):
    path = tmp_path / "tables.toml"
    path.write_text('one = 1\n[[rows]]\ncells = [["a", "δ"], []]\ninner = { numbers = [1, 2.5] }\n', "utf-8")
    assert read_tables(path) == {
        "one": 1,
        "rows": ({"cells": (("a", "δ"), ()), "inner": {"numbers": (1, 2.5)}},),
    }
