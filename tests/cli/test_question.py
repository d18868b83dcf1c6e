import pytest


@pytest.fixture
def asked(cli, home, exchange):
    cli("ask", "cells", home / "study.toml", "--folder", exchange, expect=4)
    (file,) = (exchange / "questions/clinic").glob("*.question")
    return file


def test_a_question_says_what_comes_back_how_noisy_and_for_how_much(cli, asked):
    text = " ".join(cli("question", "show", asked).stdout.split())
    assert "noisy numbers, no row." in text
    assert "It costs ε = 1 (pure), add/remove one row." in text
    assert "whether one row is in it" in text
    assert "74 of 100" in text
    assert "counts" in text
    plain = cli.json("question", "show", asked)
    (part,) = [part for part in plain["parts"] if part["name"] == "counts"]
    assert part["within"] in text
    assert f": {sum(part['numbers'] for part in plain['parts'])} noisy" in plain["asked"]
    assert plain["guarantee"]["relation"] == "add/remove"


def test_a_file_that_is_no_question_ends_with_5(cli, asked):
    asked.write_bytes(asked.read_bytes()[:-1])
    cli("question", "show", asked, expect=5)
