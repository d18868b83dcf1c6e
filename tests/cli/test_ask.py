"""A study's questions are written once, and another seed makes another question."""


def test_another_seed_is_another_asking(cli, learner, exchange):
    first = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    learner.write_text(learner.read_text().replace("seed = 0", "seed = 1"))
    second = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    assert first["pending"]["clinic"] != second["pending"]["clinic"]
    assert len(list((exchange / "questions/clinic").iterdir())) == 2


def test_asking_again_asks_nothing_new_and_says_who_is_waited_for(cli, learner, exchange):
    first, second = (cli.json("ask", "cells", learner, "--folder", exchange, expect=4) for _ in range(2))
    assert first == second
    assert not first["answered"]
    asked = cli("ask", "cells", learner, "--folder", exchange, expect=4)
    assert asked.stdout == "clinic: 1 unanswered\n"
    assert asked.stderr.startswith("waiting: ")


def test_another_method_than_the_studys_is_refused_and_nothing_is_written(cli, learner, exchange):
    refused = cli("ask", "transport", learner, "--folder", exchange, expect=2)
    assert "cells" in refused.stderr
    assert not exchange.exists()
