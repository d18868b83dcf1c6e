"""Studies at the command line: an example, a run, asking and learning over an exchange, results."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from privada.cli.study import WRITTEN_BY_PRIVADA, Progress, check_writable, summarize_result
from privada.exceptions import InputError
from privada.exchange.asking import Step
from privada.methods.evaluation import as_hypothesis
from privada.methods.marginals import from_plain
from privada.privacy import OwnerKey


def test_init_then_run(cli, tmp_path):
    written = cli.json("init", tmp_path / "new")["written"]
    assert {path.rpartition("/")[2] for path in written} >= {
        "study.toml",
        "owner.toml",
        "owner.key",
        "README.md",
    }
    assert len((tmp_path / "new" / "README.md").read_text().splitlines()) <= 15
    assert (tmp_path / "new" / "clinic" / "owner.key").stat().st_mode & 0o077 == 0
    assert "Releases" in cli("run", tmp_path / "new" / "study.toml").stdout
    assert "not empty" in cli("init", tmp_path / "new", expect=2).stderr


def test_a_file_or_a_full_folder_is_left_alone(cli, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        assert "not empty; name a new folder" in cli("init", tmp_path / name, expect=2).stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    shown = cli("init", tmp_path / "empty").stdout
    assert f"Next: privada run {tmp_path / 'empty' / 'study.toml'}" in shown.replace("\n", "")


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
    for number in range(4):
        cli("run", home / "study.toml")
        edit("study.toml", f"again = {number}", f"again = {number + 1}")
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
        ("again = 0", "again = -4", "line 3, study.again: Expected again to be a whole number >= 0"),
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

    edit("study.toml", "again = 0", 'again = 0\nproject = "stroke"\npurpose = "triage"')
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


def test_another_number_asks_anew(cli, learner, exchange):
    first = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    learner.write_text(learner.read_text().replace("again = 0", "again = 1"))
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
    refused = cli("learn", "cells", learner, "--folder", exchange, expect=4).stderr
    assert "passed over: It was signed by another key than that of clinic." in refused
    card.write_text(text.replace(f'public_key = "{pinned}"', ""))
    assert "anyone may have signed" in cli("learn", "cells", learner, "--folder", exchange).stderr


def test_another_method_than_the_studys_is_refused(cli, learner, exchange):
    exchange.mkdir()
    assert "cells" in cli("learn", "transport", learner, "--folder", exchange, expect=2).stderr


def test_the_output_is_tried_before_anything_is_learned(cli, learner, exchange):
    exchange.mkdir()
    refused = cli("learn", "cells", learner, "--folder", exchange, "--out", learner, expect=2)
    assert "was not written by an earlier run" in refused.stderr
    assert not list(exchange.rglob("*.question"))


@pytest.fixture
def model(home, allowed):
    """A model of the example's two markers."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(200, 2))
    fitted = LogisticRegression().fit(X, np.where(X.sum(axis=1) > 10, "ill", "well"))
    path = home / "model.onnx"
    path.write_bytes(as_hypothesis(fitted, width=2, classes=("well", "ill")).model.tobytes())
    return path


@pytest.fixture
def allowed(edit):
    edit("clinic/owner.toml", 'methods = ["cells"]', 'methods = ["cells", "evaluation"]')


def test_a_model_is_evaluated_at_the_studys_owner(cli, home, model):
    found = cli.json("evaluate", model, home / "study.toml", "--bins", 4, "--out", home / "result.json")
    assert found["method"] == "evaluation"
    result = found["result"]
    assert result["accuracy"]["low"] <= result["accuracy"]["value"] <= result["accuracy"]["high"]
    assert set(result["confusion"]) == {"well", "ill"}
    assert len(result["roc"]) == 3
    assert (home / "result.json").exists()
    assert found["releases"][0]["kind"] == "evaluation.outcomes"


def test_the_same_model_again_costs_nothing(cli, home, model):
    first = cli.json("evaluate", model, home / "study.toml")
    again = cli.json("evaluate", model, home / "study.toml")
    assert again["result"] == first["result"]
    assert again["releases"][0]["line"] == first["releases"][0]["line"]


def test_tables_are_shown(cli, home, model):
    said = cli("evaluate", model, home / "study.toml", "--bins", 1, "--page", home / "page.html").stdout
    assert "accuracy" in said
    assert "Releases" in said
    assert (home / "page.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--bins", 0), "bins"),
        (("--owner", "shop"), "no owner named 'shop'"),
        (("--positive", "maybe"), "positive"),
    ],
)
def test_wrong_options_are_named_and_nothing_is_charged(cli, home, model, words, message):
    said = cli("evaluate", model, home / "study.toml", *words, expect=2)
    assert message in said.stderr


@pytest.mark.usefixtures("allowed")
def test_what_is_no_model_is_refused(cli, home):
    (home / "model.onnx").write_bytes(b"no model")
    assert (
        "Expected an ONNX model" in cli("evaluate", home / "model.onnx", home / "study.toml", expect=2).stderr
    )
    assert "there is no file" in cli("evaluate", home / "no.onnx", home / "study.toml", expect=2).stderr


def test_an_owner_that_does_not_allow_it_is_not_asked(cli, home, model, edit):
    edit("clinic/owner.toml", '"cells", "evaluation"', '"cells"')
    cli("evaluate", model, home / "study.toml", expect=3)


def test_a_line_for_each_step_and_the_reasons_of_those_who_were_left_out():
    lines = []
    progress = Progress("Cells", lines.append)
    for number, owner, state, reason in [
        (1, "north", "asked", ""),
        (1, "south", "asked", ""),
        (1, "north", "answered", ""),
        (1, "south", "late", ""),
        (1, "south", "left out", "too late"),
        (2, "north", "asked", ""),
    ]:
        progress.note(Step(round=number, owner=owner, question="ab" * 32, state=state, reason=reason))
    assert lines[2] == "Cells, round 1: north done, south asked"
    assert lines[-1] == "Cells, round 2: north asked"
    assert progress.left_out == {"south": "too late."}


def test_the_result_as_json_as_file_and_as_page(cli, home, tmp_path):
    study, out, page = home / "study.toml", tmp_path / "deep" / "result.json", tmp_path / "page.html"
    plain = cli.json("run", study, "--out", out, "--page", page)
    assert plain == json.loads(out.read_text())
    assert plain["guarantee"]["epsilon"] == 1.0
    assert plain["stamps"] == []
    counts = plain["result"]["tables"][0]["counts"]
    assert {name: len(column) for name, column in counts.items()} == {"well": 12, "ill": 12}
    assert [line["kind"] for line in plain["ledgers"]["clinic"]["datasets"]["patients"]["lines"]] == [
        "charge"
    ]
    html = page.read_text()
    assert "ε = 1 (pure), add/remove one row" in html
    assert "http" not in html.replace("http-equiv", "").replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_output_is_checked_before_anything_is_charged(cli, home):
    cli("run", home / "study.toml", "--out", home, expect=2)
    assert charges(cli, home) == 0


@pytest.mark.parametrize("flag", ["--out", "--page"])
def test_a_mistyped_output_takes_nothing_with_it(cli, home, flag):
    study, ledger = home / "study.toml", home / "clinic" / "ledger.sqlite"
    before = ledger.read_bytes()
    for file in (ledger, study, home / "clinic" / "owner.key"):
        assert "not written by an earlier run" in cli("run", study, flag, file, expect=2).stderr
    assert ledger.read_bytes() == before
    assert "cannot be written" in cli("run", study, flag, "/proc/privada-result", expect=2).stderr
    result = home / "result"
    for _ in range(2):  # an earlier result may be replaced
        cli("run", study, flag, result)
    assert result.stat().st_size > 100


def test_preparing_leaves_no_trace_and_makes_folders(tmp_path):
    check_writable(tmp_path / "deep" / "result.json", None)
    assert (tmp_path / "deep").is_dir()
    assert not list((tmp_path / "deep").iterdir())


@pytest.mark.parametrize("text", WRITTEN_BY_PRIVADA)
def test_only_what_an_earlier_run_wrote_is_replaced(tmp_path, text):
    file = tmp_path / "result"
    file.write_text(" " * 2000 + text)
    with pytest.raises(InputError, match="not written by an earlier run"):
        check_writable(file)
    file.write_text(text)
    check_writable(file)
    assert file.read_text() == text


def test_a_model_is_named_in_tables_and_written_out_in_json():
    plain = {"hypothesis": {"form": "network", "weights": [1.0]}, "guarantee": "ε = 1", "error": 0.1}
    assert summarize_result(plain) == {"hypothesis": "network, written out in the JSON", "error": 0.1}
    plain["hypothesis"]["reason"] = "not improved"
    assert summarize_result(plain)["hypothesis"] == "not improved"
