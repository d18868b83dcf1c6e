import json

import numpy as np
import pytest

from privada.methods.marginals import from_plain


def charges(cli, home):
    """The number of charges to the example's clinic."""
    shown = cli.json("ledger", "show", home / "clinic/ledger.sqlite", "--key", home / "clinic/owner.key")
    return [line["kind"] for line in shown["datasets"]["patients"]["lines"]].count("charge")


def test_a_study_of_marginals_returns_a_model_and_a_synthetic_target(cli, home, edit, tmp_path):
    edit("clinic/owner.toml", 'methods = ["cells"]', 'methods = ["marginals"]')
    edit(
        "study.toml",
        'name = "cells"\ncenters = "centers.csv"\nby_label = true',
        'name = "marginals"\nsource = "centers.csv"\nsize = 1200\nreweight = false',
    )
    shown = cli("run", home / "study.toml", "--out", tmp_path / "result.json").stdout
    assert "network, written out in the JSON" in shown or "constant, written out in the JSON" in shown
    assert "weights.0" not in shown
    result = json.loads((tmp_path / "result.json").read_text())["result"]
    target = result["synthetic_target"]
    assert len(target["weights"]) == 12
    assert {name: len(share) for name, share in target["probabilities"].items()} == {"well": 12, "ill": 12}
    assert target["guarantees"] == ["ε = 1 (pure), add/remove one row"]
    centers = np.loadtxt(home / "centers.csv", delimiter=",", skiprows=1)
    labelled = from_plain(result["hypothesis"]).codes(centers)
    assert set(labelled) <= {0, 1}


def test_a_study_cannot_pass_the_owners_budget(cli, home, edit):
    for seed in range(4):
        cli("run", home / "study.toml")
        edit("study.toml", f"seed = {seed}", f"seed = {seed + 1}")
    refused = cli("run", home / "study.toml", expect=3)
    assert "Nothing was charged" in refused.stderr
    assert refused.stdout == ""
    lines = cli.json("ledger", "show", home / "clinic/owner.toml")["datasets"]["patients"]["lines"]
    assert len(lines) == 5


def test_the_same_study_again_gets_the_same_answer_and_is_charged_once(cli, home):
    first, second = (cli.json("run", home / "study.toml") for _ in range(2))
    assert first["result"] == second["result"]
    assert charges(cli, home) == 1


def test_a_study_cannot_pass_the_owners_policy(cli, home, edit):
    edit("study.toml", "epsilon = 1.0", "epsilon = 2.0")
    assert "at most 25.0% at once" in cli("run", home / "study.toml", expect=3).stderr
    edit("clinic/owner.toml", 'methods = ["cells"]', 'methods = ["transport"]')
    edit("study.toml", "epsilon = 2.0", "epsilon = 1.0")
    assert "does not answer cells" in cli("run", home / "study.toml", expect=3).stderr


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("epsilon = 1.0", "epsilon = -1.0", "study.toml, line 9, budget.epsilon: Expected epsilon > 0"),
        ("epsilon = 1.0", "epsilon = 'much'", "line 9, budget.epsilon: expected a number, got 'much'"),
        ("epsilon = 1.0", "epsilom = 1.0", "budget.epsilon: Expected exactly one of epsilon and rho"),
        ("epsilon = 1.0", "rho = 1.0\ndelta = 1e-6", "line 10, budget.delta: Expected delta to be absent"),
        ('name = "cells"', 'name = "magic"', "line 12, method.name: Expected method to be one of cells"),
        ("by_label = true", "by_lable = true", "line 14, method.by_lable: nobody knows this key"),
        ('centers = "centers.csv"', 'centers = "x.csv"', "line 13, method.centers: cannot read x.csv"),
        (
            "clinic/owner.toml",
            "clinic/nobody.toml",
            "line 6, owners.clinic.owner: there is no file nobody.toml",
        ),
        ("owner = ", "ower = ", "line 5, owners.clinic.owner: expected either owner"),
        ("[owners.clinic]", "[owner.clinic]", "expected at least one [owners.NAME]"),
        ("seed = 0", "seed = -4", "line 3, study.seed: Expected seed to be a whole number >= 0"),
        ("title =", "titel =", "line 1, study.title: expected a string, but it is missing"),
        ("by_label = true", "by_label = true\n[baselines]\nnames = []", "line 15, baselines: nobody knows"),
        ("by_label = true", "by_label = true\n[budgets]", "line 15, budgets: nobody knows this key"),
        ("[budget]", "[budget", "study.toml: Expected"),
    ],
)
def test_a_bad_study_names_line_and_key(cli, home, edit, before, after, message):
    edit("study.toml", before, after)
    failed = cli("run", home / "study.toml", expect=2)
    assert message in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
    assert charges(cli, home) == 0


def test_bad_rows_name_the_column_and_nothing_else(cli, home, edit):
    edit("clinic/rows.csv", "\n", "\n0.5,0.25,plague\n")
    failed = cli("run", home / "study.toml", expect=2)
    assert "plague" not in failed.output
    assert "0.25" not in failed.output


def test_run_needs_the_owners_file(cli, home, edit):
    cli("owner", "schema", home / "clinic/owner.toml", "--out", home / "schema.toml")
    edit("study.toml", 'owner = "clinic/owner.toml"', 'schema = "schema.toml"')
    assert "privada run --exchange" in cli("run", home / "study.toml", expect=2).stderr


def test_a_value_that_a_reader_trips_over_is_not_shown(cli, home):
    """Arrow takes the type of a CSV column from its first block and quotes what does not fit later."""
    with (home / "clinic/rows.csv").open("a") as stream:
        stream.write("1.234,5.678,well\n" * 80_000)
        stream.write("Jane Doe,5.678,well\n")
    failed = cli("run", home / "study.toml", expect=2)
    assert "column 1 'marker_a': not a number at line 81202" in failed.stderr
    assert "Jane" not in failed.output


def test_a_run_that_waits_in_vain_says_so_and_goes_on_later(cli, home, learner, exchange):
    waiting = cli("run", learner, "--exchange", exchange, "--patience", 0, expect=4).stderr
    assert waiting.startswith("waiting: Waiting for clinic to answer")
    cli("answer", home / "clinic/owner.toml", "--exchange", exchange, "--name", "clinic")
    plain = cli.json("run", learner, "--exchange", exchange, "--patience", 0)
    assert plain["releases"][0]["dataset"] == "patients"
    assert plain["ledgers"] == {}


def test_a_refusal_over_an_exchange_ends_the_run(cli, home, edit, learner, exchange):
    edit("clinic/owner.toml", "largest_share = 0.25", "largest_share = 0.1")
    cli("run", learner, "--exchange", exchange, "--patience", 0, expect=4)
    cli("answer", home / "clinic/owner.toml", "--exchange", exchange, "--name", "clinic", expect=3)
    refused = cli("run", learner, "--exchange", exchange, "--patience", 0, expect=3).stderr
    assert "clinic refused" in refused


def test_a_signed_question_says_on_the_ledger_who_asked_and_what_for(cli, home, edit, learner, exchange):
    from privada.privacy.keys import LearnerKey

    edit("study.toml", "seed = 0", 'seed = 0\nproject = "stroke"\npurpose = "triage"')
    LearnerKey.generate().save(home / "alice.key")
    cli("run", learner, "--exchange", exchange, "--key", home / "alice.key", "--patience", 0, expect=4)
    done = cli.json("answer", home / "clinic/owner.toml", "--exchange", exchange, "--name", "clinic")
    assert done["questions"][0]["learner"] == "alice"
    cli("run", learner, "--exchange", exchange, "--key", home / "alice.key", "--patience", 0)
    text = cli("ledger", "export", home / "clinic/owner.toml").stdout
    assert '"alice"' in text
    assert '"stroke"' in text


def test_the_model_of_a_study_is_saved_and_predicts(cli, home, tmp_path):
    model = tmp_path / "model.privada"
    shown = cli("run", home / "study.toml", "--model", model).stdout
    assert f"Wrote {model}" in shown
    predicted = cli("predict", model, home / "centers.csv").stdout.splitlines()
    assert predicted[0] == "prediction,probability of well,probability of ill"
    assert len(predicted) == 13
    assert (
        "exists and is not overwritten" in cli("run", home / "study.toml", "--model", model, expect=2).stderr
    )


def test_a_model_that_there_cannot_be_is_refused_before_the_charge(cli, home, edit, tmp_path):
    edit("study.toml", "by_label = true", "by_label = false")
    refused = cli("run", home / "study.toml", "--model", tmp_path / "model.privada", expect=2)
    assert "by_label = true" in refused.stderr
    assert charges(cli, home) == 0
