"""Results of batches become one: integers are added, everything else is refused or merged."""

import numpy as np
import pytest

from privada.exceptions import AnswerError
from privada.parties.compute.folds import Adding, Merging


def test_integers_are_added_modulo_two_to_the_64th():
    fold = Adding()
    total = fold.begin(np.zeros(2, dtype=np.int8))
    for more in (np.array([2**63 - 1, 1]), np.array([1, -3])):
        total = fold.join(total, more)
    assert total.dtype == np.int64
    assert total.tolist() == [-(2**63), -2]


def test_names_stay_the_same():
    fold = Adding()
    total = fold.begin({"a": np.zeros(1, dtype=np.int64)})
    assert fold.join(total, {"a": np.array([4])})["a"].tolist() == [4]
    with pytest.raises(AnswerError, match="other names"):
        fold.join(total, {"b": np.array([4])})


@pytest.mark.parametrize("wrong", [np.zeros(1), np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.uint64)])
def test_anything_else_is_no_sum(wrong):
    fold = Adding()
    with pytest.raises(AnswerError, match="not integers"):
        fold.join(fold.begin(np.zeros(1, dtype=np.int64)), wrong)
    with pytest.raises(AnswerError, match="not zero"):
        fold.begin(np.ones(1, dtype=np.int64))


def test_other_results_are_merged():
    fold = Merging(max)
    assert fold.join(fold.join(fold.begin(-1), 5), 3) == 5
