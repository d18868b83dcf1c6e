"""The form of the paper's tables."""

import numpy as np
import pytest

from privada_lab.experiments.transport.case import Scores
from privada_lab.experiments.transport.paper_form import TABLE_1, few_labels_form, table_1_form


def test_the_papers_means_are_those_of_its_table():
    means = np.mean(list(TABLE_1.values()), axis=0)
    assert means == pytest.approx([80.2, 91.2, 93.0, 92.3], abs=0.06)


def test_rows_are_pairs_and_the_papers_numbers_stand_last():
    scores = Scores()
    scores.add("ours, eps 4", ("amazon", "webcam"), 97.0, 99.0)
    scores.add("ours, eps 4", ("webcam", "amazon"), 90.0)
    scores.add("ADDA (not private)", ("amazon", "webcam"), 96.0)
    table = table_1_form(scores, title="Office", printed=True)
    assert table.columns == ("pair", "ours, ε = 4", "ADDA", "the paper: PATE, DPDA, OTDA, ADDA")
    assert table.rows == (
        ("amazon to webcam", "98.0", "96.0", "77.9, 96.4, 95.5, 96.8"),
        ("webcam to amazon", "90.0", "", "79.2, 93.1, 93.2, 93.0"),
    )
    assert table_1_form(scores, title="Office", printed=False).columns[-1] == "ADDA"
    assert few_labels_form(scores, title="Office").rows == ()
