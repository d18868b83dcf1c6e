"""Predictions for the rows of a file."""

import numpy as np
import pytest

import privada
from privada.exceptions import InputError
from privada.methods.models.predicting import predict_table, read_features

X = np.array([[0.1], [0.2], [0.9], [0.8]] * 50)
y = np.array(["no", "no", "yes", "yes"] * 50)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    made = privada.CellClassifier([[0.0], [1.0]], classes=("no", "yes"), bounds=(0, 1), epsilon=4)
    return made.fit(X + 1e-9 * np.arange(200)[:, None], y).save(
        tmp_path_factory.mktemp("m") / "model.privada"
    )


def test_predictions_and_probabilities_have_names(model, tmp_path):
    (tmp_path / "rows.csv").write_text("0.05\n0.97\n")
    header, first, second = predict_table(model, tmp_path / "rows.csv")
    assert header == ["prediction", "probability of no", "probability of yes"]
    assert (first[0], second[0]) == ("no", "yes")
    assert sum(first[1:]) == pytest.approx(1.0)


def test_columns_are_found_by_name(tmp_path):
    (tmp_path / "rows.csv").write_text("b,c,a\n1,2,3\n4,5,6\n")
    assert read_features(tmp_path / "rows.csv", width=2, names=["a", "b"]).tolist() == [[3, 1], [6, 4]]
    assert read_features(tmp_path / "rows.csv", width=3).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("a,b\n", "no rows"),
        ("1,2,3\n", "Expected rows of 2 columns"),
        ("1,2\n1\n", "Line 2 has 1 columns"),
        ("1,2\n1,x\n", "Line 2 holds something that is not a number"),
        ("1,2\n1,nan\n", "Line 2 holds a missing"),
        ("a,c\n1,2\n", "there is no b"),
    ],
)
def test_bad_rows_are_named_with_their_line(tmp_path, text, message):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_features(tmp_path / "rows.csv", width=2, names=["a", "b"])
