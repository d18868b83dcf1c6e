"""Contenders on generated domains."""

from importlib.util import find_spec

import numpy as np

from privada_lab.experiments import transport
from privada_lab.experiments.transport import contenders


def test_only_one_target_label_a_class_is_shown(domains):
    case = next(transport.cases("googlenet", domains("googlenet")))
    known = contenders.one_label_a_class(case, 0)
    at = known >= 0
    assert np.array_equal(known[at], case.labels[1][at])
    assert np.unique(known[at], return_counts=True)[1].tolist() == [1] * at.sum()


def test_adversarial_adaptation_has_a_row_where_torch_is(domains):
    case = next(transport.cases("googlenet", domains("googlenet")))
    found = contenders.adversarial(case)
    assert (found is None) == (find_spec("torch") is None)
    if found is not None:
        assert case.accuracy(found.argmax(axis=1)) > 50


def test_minibatches_at_record_level_are_answered_through_an_owner(domains):
    case = next(transport.cases("googlenet", domains("googlenet", n=300)))
    table = contenders.minibatched(case, 8.0, batches=2)
    assert table.shape == (300, 10)
    assert np.allclose(table.sum(axis=1), 1)
    if contenders.has_network():
        assert contenders.minibatched(case, 8.0, batches=2, network=True).shape == (300, 10)
