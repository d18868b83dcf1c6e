import pytest

from privada_lab.experiments.summarization.parameters import (
    OWNERS,
    asked_curve,
    asked_owners,
    printed_privacy,
)


def test_the_printed_noise_guarantees_less_than_it_claims():
    table = {figure.figure: figure.value for figure in printed_privacy()}
    assert table["printed_true_epsilon_validation_replace_one"] == pytest.approx(3.301, abs=1e-3)


def test_no_more_owners_are_asked_than_there_are():
    asked = [figure.value for figure in asked_owners()]
    assert asked[0] == pytest.approx(4)
    assert all(value <= k for value, k in zip(asked, OWNERS, strict=True))
    assert list(asked_curve().series[0].mean) == asked
