"""Ask, answer and learn through files, as institutions without a network would."""

import json

import numpy as np
import pytest

from privada.exchange.posting import load_release


def test_ask_answer_learn(cli, home, learner, exchange, tmp_path):
    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    (digest,) = asked["pending"]["clinic"]
    (question,) = (exchange / "questions/clinic").glob(f"{digest}-*.question")
    assert cli("learn", "cells", learner, "--folder", exchange, expect=4).stderr.startswith("waiting: ")
    priced = cli.json("price", question, "--owner", home / "clinic/owner.toml")["prices"]
    assert priced[0]["share"] == pytest.approx(0.25)

    answered = cli.json("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    assert [row["outcome"] for row in answered["questions"]] == ["answered"]
    assert "All questions are answered" in cli("ask", "cells", learner, "--folder", exchange).stdout
    out = tmp_path / "result.json"
    plain = cli.json("learn", "cells", learner, "--folder", exchange, "--out", out)
    assert json.loads(out.read_text()) == plain
    file = exchange / "releases/clinic" / f"{digest}.release"
    counts = plain["result"]["tables"][0]["counts"]
    columns = [list(by_cell.values()) for by_cell in counts.values()]
    assert np.array_equal(np.column_stack(columns), load_release(file)["counts"])
    assert plain["releases"][0]["question"] == digest

    shown = cli.json("release", "show", file, "--question", question)
    assert shown["values"]["counts"] == load_release(file)["counts"].tolist()
    verified = cli.json("ledger", "verify", home / "clinic/owner.toml", "--receipt", exchange / "releases")
    assert verified["receipts"] == 1


def test_nothing_is_charged_twice(cli, home, learner, exchange):
    for _ in range(2):
        cli("ask", "cells", learner, "--folder", exchange, expect=4)
    for expected in (1, 0):
        done = cli.json("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
        assert len(done["questions"]) == expected
    assert len(cli.json("ledger", "show", home / "clinic/owner.toml")["datasets"]["patients"]["lines"]) == 2


def test_folders_and_methods_that_are_not_there(cli, learner, exchange):
    assert "there is no folder" in cli("learn", "cells", learner, "--folder", exchange, expect=2).stderr
    assert "one of cells" in cli("ask", "magic", learner, "--folder", exchange, expect=2).stderr
