"""Results are written line by line and read back."""

import pytest

from privada.exceptions import InputError
from privada_lab.experiments.tables import Results
from privada_lab.experiments.tables.results import NAME, append


def test_results_are_read_back_and_a_line_that_was_cut_short_is_left_out(tmp_path, record):
    made = [record("shift", 0.1, forecast=0.5, band=(0.4, 0.6)), record("public ridge", 0.2)]
    for each in made:
        append(tmp_path, each)
    assert list(Results.read(tmp_path)) == made
    with (tmp_path / NAME).open("a") as file:
        file.write('{"pair": "wi')
    assert list(Results.read(tmp_path)) == made
    with (tmp_path / NAME).open("a") as file:
        file.write("\n" + made[0].to_line() + "\n")
    with pytest.raises(InputError, match="line 3"):
        Results.read(tmp_path)


def test_a_fit_that_was_given_up_is_tried_again_with_more_time(record):
    late = record("ReweightedClassifier", None, seconds=10.2, failed="time limit")
    broken = record("class shares", None, failed="InputError")
    results = Results([late, broken])
    assert results.settled(late.key, 10.0)
    assert not results.settled(late.key, 60.0)
    assert not results.settled(late.key, None)
    assert results.settled(broken.key, None)
    assert not results.settled(record("shift", 0.1).key, 10.0)
