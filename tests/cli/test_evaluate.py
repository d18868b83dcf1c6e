"""``privada evaluate``: a model, a study's owner, and what is paid."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from privada.methods.evaluation import as_hypothesis


@pytest.fixture
def model(home):
    """A model of the example's two markers."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(200, 2))
    fitted = LogisticRegression().fit(X, np.where(X.sum(axis=1) > 10, "ill", "well"))
    path = home / "model.onnx"
    path.write_bytes(as_hypothesis(fitted, width=2, classes=("well", "ill")).model.tobytes())
    return path


@pytest.fixture(autouse=True)
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


def test_what_is_no_model_is_refused(cli, home):
    (home / "model.onnx").write_bytes(b"no model")
    assert (
        "Expected an ONNX model" in cli("evaluate", home / "model.onnx", home / "study.toml", expect=2).stderr
    )
    assert "there is no file" in cli("evaluate", home / "no.onnx", home / "study.toml", expect=2).stderr


def test_an_owner_that_does_not_allow_it_is_not_asked(cli, home, model, edit):
    edit("clinic/owner.toml", '"cells", "evaluation"', '"cells"')
    cli("evaluate", model, home / "study.toml", expect=3)
