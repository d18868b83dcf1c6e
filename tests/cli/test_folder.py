"""Ask, answer and learn through files, as institutions without a network would."""

import json

import numpy as np
import pytest

from privada.privacy import OwnerKey, Release


@pytest.fixture
def exchange(tmp_path):
    return tmp_path / "exchange"


@pytest.fixture
def learner(home, cli):
    """A learner who has only the owner's card."""
    cli("owner", "schema", home / "clinic/owner.toml", "--out", home / "schema.toml")
    text = (home / "study.toml").read_text().replace('owner = "clinic/owner.toml"', 'schema = "schema.toml"')
    (home / "study.toml").write_text(text)
    return home / "study.toml"


def test_ask_answer_learn(cli, home, learner, exchange, tmp_path):
    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    (digest,) = asked["pending"]["clinic"]
    question = exchange / "questions/clinic" / f"{digest}.question"
    assert cli("learn", "cells", learner, "--folder", exchange, expect=4).stderr.startswith("waiting: ")
    priced = cli.json("price", question, "--owner", home / "clinic/owner.toml")["prices"]
    assert priced[0]["share"] == pytest.approx(0.25)

    answered = cli.json("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    assert [row["outcome"] for row in answered["questions"]] == ["answered"]
    assert "All is answered" in cli("ask", "cells", learner, "--folder", exchange).stdout
    out = tmp_path / "result.json"
    plain = cli.json("learn", "cells", learner, "--folder", exchange, "--out", out)
    assert json.loads(out.read_text()) == plain
    file = exchange / "releases/clinic" / f"{digest}.release"
    counts = plain["result"]["tables"][0]["counts"]
    assert np.array_equal(np.column_stack(list(counts.values())), Release.load(file)["counts"])
    assert plain["releases"][0]["question"] == digest

    shown = cli.json("release", "show", file, "--question", question)
    assert shown["values"]["counts"] == Release.load(file)["counts"].tolist()
    verified = cli.json("ledger", "verify", home / "clinic/owner.toml", "--receipt", exchange / "releases")
    assert verified["receipts"] == 1


def test_nothing_is_charged_twice(cli, home, learner, exchange):
    for _ in range(2):
        cli("ask", "cells", learner, "--folder", exchange, expect=4)
    for expected in (1, 0):
        done = cli.json("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
        assert len(done["questions"]) == expected
    assert len(cli.json("ledger", "show", home / "clinic/owner.toml")["datasets"]["patients"]["lines"]) == 2


def test_a_person_approves(cli, home, edit, learner, exchange):
    edit("clinic/owner.toml", "approval = false", "approval = true")
    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    (digest,) = asked["pending"]["clinic"]
    answer = ("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    (row,) = cli.json(*answer, expect=4)["questions"]
    assert (row["outcome"], row["share"]) == ("waiting", pytest.approx(0.25))
    assert "all 64 digits" in cli(*answer, "--approve", digest[:12], expect=2).stderr
    shown = cli(*answer, "--approve", "0" * 64, expect=4).stdout
    assert "waiting" in shown
    assert digest in shown
    assert "answered" in cli(*answer, "--approve", digest).stdout


def test_nothing_is_said_of_a_file_that_was_changed_meanwhile(cli, home, learner, exchange):
    from privada.cli.answer import _about
    from privada.engines.folder import Answered
    from privada.parties.owner_file import OwnerFile

    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    (digest,) = asked["pending"]["clinic"]
    path = exchange / "questions" / "clinic" / f"{digest}.question"
    file = OwnerFile.read(home / "clinic/owner.toml")
    assert "guarantee" in _about(Answered(digest, path, "waiting"), file)
    assert _about(Answered("0" * 64, path, "waiting"), file) == {}
    path.unlink()
    assert _about(Answered(digest, path, "waiting"), file) == {}


def test_a_refusal_reaches_the_learner(cli, home, edit, learner, exchange):
    edit("clinic/owner.toml", "largest_share = 0.25", "largest_share = 0.1")
    cli("ask", "cells", learner, "--folder", exchange, expect=4)
    cli("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic", expect=3)
    assert "at most 10.0% at once" in cli("learn", "cells", learner, "--folder", exchange, expect=3).stderr


def test_a_release_of_another_key_is_found(cli, home, learner, exchange):
    cli("ask", "cells", learner, "--folder", exchange, expect=4)
    cli("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    card = home / "schema.toml"
    text = card.read_text()
    pinned = text.split('public_key = "')[1][:64]
    card.write_text(text.replace(pinned, OwnerKey.generate().public))
    assert "another owner's key" in cli("learn", "cells", learner, "--folder", exchange, expect=5).stderr
    card.write_text(text.replace(f'public_key = "{pinned}"', ""))
    assert "anyone may have signed" in cli("learn", "cells", learner, "--folder", exchange).stderr


def test_names_and_methods_that_are_not_there(cli, home, learner, exchange):
    assert "there is no folder" in cli("learn", "cells", learner, "--folder", exchange, expect=2).stderr
    assert "one of cells" in cli("ask", "magic", learner, "--folder", exchange, expect=2).stderr
    cli("ask", "cells", learner, "--folder", exchange, expect=4)
    wrong = cli("answer", home / "clinic/owner.toml", "--folder", exchange, expect=2)
    assert "say --name, one of: clinic" in wrong.stderr


def test_another_seed_is_another_asking(cli, learner, exchange):
    cli("ask", "cells", learner, "--folder", exchange, expect=4)
    learner.write_text(learner.read_text().replace("seed = 0", "seed = 1"))
    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    assert len(asked["pending"]["clinic"]) == 2
