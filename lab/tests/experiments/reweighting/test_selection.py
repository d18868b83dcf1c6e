"""How settings are chosen and models averaged."""

import numpy as np
import pytest

from privada.methods.reweighting import Penalties
from privada_lab.baselines.cnvx_adap import cnvx_adap
from privada_lab.experiments.reweighting import contenders, selection


def test_a_ridge_of_the_mixture_is_cnvxadap_with_its_radius_and_a_large_penalty(pair):
    S, T = contenders.with_constant(pair.source.X), contenders.with_constant(pair.train.X)
    a, b = pair.source.y, pair.train.y
    for name, weights in selection.weightings(S, a, T).items():
        public = {name: selection.moments(S, a, weights)}
        for coef in selection.solved(public, selection.moments(T, b), [(0.3, name)])[4:12:3]:
            found = cnvx_adap(
                S,
                a,
                T,
                b,
                radius=float(np.linalg.norm(coef)),
                penalties=Penalties(alpha=0.3, kappa1=16.0),
                public=weights,
            )
            assert found.coef == pytest.approx(coef, abs=1e-6)


def test_its_own_weights_are_weights_of_public_rows_and_prefer_the_domain_that_is_like_the_target(pair):
    S, T = contenders.with_constant(pair.source.X), contenders.with_constant(pair.train.X)
    a, b = pair.source.y, pair.train.y
    plain, own = selection.domains(S, a, pair.groups), pair.groups == 1
    assert selection.likely(plain, S[own], a[own]).argmax() == 1
    near = selection.likely(plain, T, b)
    assert near.max() == 1
    assert near.min() < 1
    matched = selection.weightings(S, a, T)["DM"]
    found = selection.mixed(selection.domains(S, a, pair.groups, matched), near)
    for mine, wanted in zip(found, selection.moments(S, a, matched * near[pair.groups]), strict=True):
        assert mine == pytest.approx(wanted, abs=1e-9)


def test_cnvxadap_mixes_the_target_with_the_roots_of_dms_weights_by_domain(pair):
    """One of its models, made from the public rows one by one."""
    S, a = contenders.with_constant(pair.source.X), pair.source.y
    T = contenders.with_constant(np.vstack([pair.train.X, pair.validation.X]))
    b = np.r_[pair.train.y, pair.validation.y]
    family = selection.Family.of(pair)
    index = family.settings.index((0.5, "own", selection.PENALTIES[6]))
    near = selection.likely(selection.domains(S, a, pair.groups), T, b)
    weights = np.sqrt(selection.weightings(S, a, T)["DM"]) * near[pair.groups]
    public, target = selection.moments(S, a, weights), selection.moments(T, b)
    A, c = ((s + t) / 2 for s, t in zip(public, target, strict=True))
    wanted = np.linalg.solve(A + selection.PENALTIES[6] * np.eye(len(A)), c)
    assert family.coefs[index] == pytest.approx(wanted, abs=1e-6)


def test_without_known_domains_its_own_weights_are_dms(pair):
    S, T = contenders.with_constant(pair.source.X), contenders.with_constant(pair.train.X)
    weights = selection.weightings(S, pair.source.y, T)["DM"]
    parts = selection.domains(S, pair.source.y, None, weights)
    found = selection.mixed(parts, selection.likely(parts, T, pair.train.y))
    assert found[0] == pytest.approx(selection.moments(S, pair.source.y, weights)[0], abs=1e-9)


SETTINGS = ((0.0, "DM", 0.1), (0.0, "DM", 1.0), (1.0, "DM", 0.1))


def test_settings_that_the_folds_tell_apart_are_not_averaged():
    losses = np.random.default_rng(0).exponential(0.01, size=(200, 3)) + np.array([1.0, 1.0, 0.5])
    losses[:, 1] = losses[:, 0]
    family = selection.Family(SETTINGS, losses, np.eye(3))
    assert family.chosen("target") == pytest.approx([0.5, 0.5, 0])
    assert family.chosen("DM") == pytest.approx([0, 0, 1])
    assert family.chosen("CnvxAdap") == pytest.approx([0, 0, 1], abs=1e-12)


def test_adaptation_keeps_to_the_target_where_the_held_out_rows_do_not_tell():
    losses = np.random.default_rng(0).exponential(size=(200, 3))
    losses[:, 1] = losses[:, 0]
    losses[:, 2] = np.r_[losses[1:, 0], losses[0, 0]] + 1e-6  # another model, not ahead
    family = selection.Family(SETTINGS, losses, np.eye(3))
    assert family.chosen("CnvxAdap")[2] == 0


def test_what_the_folds_do_not_tell_is_as_likely_as_the_module_says():
    settings = (*SETTINGS, (0.5, "own", 0.1), (0.1, "own", 0.1), (1.0, "KMM", 0.1))
    family = selection.Family(settings, np.ones((50, 6)), np.eye(6))
    wanted = [1 / 12, 1 / 12, 1 / 6, 20 / 33, 2 / 33, 0]
    assert family._weights("CnvxAdap") == pytest.approx(wanted)
    assert family._weights("target") == pytest.approx([0.5, 0.5, 0, 0, 0, 0])
