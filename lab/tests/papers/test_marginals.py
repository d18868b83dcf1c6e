import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from privada.exceptions import InputError
from privada.methods.cells import Bins
from privada.methods.marginals import Constant
from privada_lab.papers.marginals import (
    balanced_bins,
    paper_error_marginals,
    paper_expril,
    paper_marginals,
    true_epsilon,
)

TABLES = (Bins(feature=0, edges=np.array([0.5])), Bins(feature=1, edges=np.array([0.3, 0.6])))


def test_the_printed_formula_fails_its_own_claim():
    assert true_epsilon(66.0) > 46 / 66
    assert true_epsilon(0.5) == 2.0


def test_nothing_printed_runs_without_a_rehearsal():
    X, y = np.zeros((3, 2)), np.zeros(3, dtype=int)
    with pytest.raises(InputError, match="insecure_seed"):
        paper_error_marginals(X, y, tables=TABLES, hypothesis=Constant(code=1), scale=1.0)
    with pytest.raises(InputError, match="insecure_seed"):
        paper_expril(X, y, X, epsilon=1.0, rounds=1, classifier=LogisticRegression(), reweight=False)


@pytest.mark.filterwarnings("ignore:The printed EXPRIL")
def test_ratios_are_the_true_ones_where_noise_is_small():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(500, 2)), rng.integers(0, 2, size=500)
    q = paper_error_marginals(X, y, tables=TABLES, hypothesis=Constant(code=1), scale=1e-6, insecure_seed=0)
    left = X[:, 0] < 0.5
    assert q[0] == pytest.approx((y[left] == 0).mean(), abs=1e-4)
    p = paper_marginals(X, tables=TABLES, scale=1e-6, insecure_seed=0)
    assert p[:2].sum() == pytest.approx(1, abs=1e-4)
    assert p[0] == pytest.approx(left.mean(), abs=1e-4)


@pytest.mark.filterwarnings("ignore:The printed EXPRIL")
@pytest.mark.parametrize("cumulative", [True, False])
@pytest.mark.parametrize("reweight", [True, False])
def test_expril_learns_where_noise_is_small_and_is_stamped(cumulative, reweight):
    rng = np.random.default_rng(1)
    X, source = rng.uniform(size=(600, 2)), rng.beta(1, 1.3, size=(500, 2))
    y = (X @ [1.0, 0.7] > 0.8).astype(int)
    fit = paper_expril(
        X,
        y,
        source,
        epsilon=20.0,
        rounds=2,
        classifier=LogisticRegression(),
        reweight=reweight,
        cumulative=cumulative,
        insecure_seed=0,
    )
    assert (fit.codes(X) == y).mean() > 0.85
    assert "not private as claimed" in repr(fit)
    assert len(fit.models) == 2


def test_balanced_bins_hold_as_much_weight_each():
    rng = np.random.default_rng(0)
    source, weights = rng.normal(size=(4000, 2)), rng.exponential(size=4000)
    for table in balanced_bins(source, weights, 8):
        held = np.bincount(table.assign(source), weights=weights, minlength=table.n_cells)
        assert held == pytest.approx(np.full(8, weights.sum() / 8), rel=0.02)
    constant = balanced_bins(np.ones((10, 1)), np.ones(10), 4)[0]
    assert constant.n_cells == 2


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_weighted_bins_differ_only_where_the_source_is_weighted():
    rng = np.random.default_rng(0)
    source, X = rng.normal(size=(600, 2)), rng.normal(0.7, 0.5, size=(500, 2))
    y = (X.sum(axis=1) > 1.4).astype(np.int64)
    settings = {"epsilon": 1e6, "rounds": 1, "classifier": LogisticRegression(), "insecure_seed": 0}
    fits = {
        (reweight, weighted): paper_expril(
            X, y, source, reweight=reweight, weighted_bins=weighted, **settings
        ).codes(source)
        for reweight in (True, False)
        for weighted in (True, False)
    }
    assert not np.array_equal(fits[True, True], fits[True, False])
    assert np.mean(fits[False, True] == fits[False, False]) > 0.95
