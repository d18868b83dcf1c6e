"""Dummy rows from a card alone."""

import pytest

from privada import Owner


@pytest.mark.parametrize("name", ["dummy.csv", "dummy.parquet"])
def test_dummy_rows_fit_the_owner_whose_card_it_is(cli, home, edit, tmp_path, name):
    card, out = home / "schema.toml", tmp_path / name
    cli("owner", "schema", home / "clinic/owner.toml", "--out", card)
    told = cli.json("card", "dummy", card, "--rows", 50, "--out", out)
    assert (told["cost"], told["rows"], told["private"]) == (0, 50, False)
    Owner.from_toml(home / "clinic/owner.toml")
    edit("clinic/owner.toml", 'path = "', f'path = "{out}" # "')
    Owner.from_toml(home / "clinic/owner.toml")


def test_it_says_what_the_rows_are_and_overwrites_nothing(cli, home, tmp_path):
    card, out = home / "schema.toml", tmp_path / "dummy.csv"
    cli("owner", "schema", home / "clinic/owner.toml", "--out", card)
    said = " ".join(cli("card", "dummy", card, "--out", out).stdout.split())
    assert "no private row was read, and nothing was charged" in said
    assert "exists" in cli("card", "dummy", card, "--out", out, expect=2).stderr
    assert "Expected --out" in cli("card", "dummy", card, "--out", tmp_path / "x.txt", expect=2).stderr
    assert (
        "no file" in cli("card", "dummy", tmp_path / "no.toml", "--out", tmp_path / "x.csv", expect=2).stderr
    )
