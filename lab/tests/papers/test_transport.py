"""The printed algorithms: only in rehearsal, stamped, with the printed scales."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada_lab.papers.transport import paper_dpda, paper_dpot, printed_sigma

X = np.random.default_rng(0).normal(size=(30, 20))
SETTINGS = {"components": 5, "epsilon": 4.0, "delta": 1e-3}


def test_they_run_in_rehearsal_only():
    with pytest.raises(InputError, match="not private as claimed"):
        paper_dpot(X, **SETTINGS)
    with pytest.raises(InputError, match="not private as claimed"):
        paper_dpda(X, np.zeros(30), n_classes=2, label_epsilon=1.0, **SETTINGS)


def test_they_say_what_they_are():
    sent = paper_dpot(X, X + 0.1, insecure_seed=0, **SETTINGS)
    assert "not private as claimed" in repr(sent)
    assert sent.sigma == pytest.approx(
        printed_sigma(np.linalg.norm(sent.projection, axis=1).max(), epsilon=4.0, delta=1e-3)
    )
    assert sent.plan.sum() == pytest.approx(1)
    assert np.isfinite(sent.distance)


def test_the_printed_scale_at_the_paper_example():
    """Section 3 (b): at (4, 1.9e-4) the theorem's σ/w is 1.218."""
    assert printed_sigma(1.0, epsilon=4, delta=1 / (1.2 * 4365)) == pytest.approx(1.218, abs=2e-3)


def test_adaptation_maps_sorted_rows():
    y = np.repeat([0, 1], 15)
    done = paper_dpda(X + 3 * y[:, None], y, X, n_classes=2, label_epsilon=5.0, insecure_seed=1, **SETTINGS)
    assert done.mapped.shape == X.shape
    assert np.all(np.diff(done.labels) >= 0)
    assert "not private as claimed" in done.stamps


@pytest.mark.filterwarnings("ignore:Sinkhorn did not converge")
def test_known_target_labels_keep_mass_within_their_class():
    y = np.repeat([0, 1], 15)
    source = np.random.default_rng(1).normal(size=(30, 20)) / 10 + y[:, None]
    known = np.where(np.arange(30) % 3 == 0, y, -1)
    settings = SETTINGS | {"epsilon": 400.0}
    plain, told = (
        paper_dpda(
            source,
            y,
            source,
            n_classes=2,
            label_epsilon=1e6,
            target_labels=labels,
            insecure_seed=0,
            **settings,
        )
        for labels in (None, 1 - known * (known >= 0) - 2 * (known < 0))
    )
    assert "not private as claimed" in repr(told)
    own, other = (np.linalg.norm(found.mapped - source, axis=1).mean() for found in (plain, told))
    assert own < other  # labels that are turned round send rows to the other side
