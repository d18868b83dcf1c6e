"""The experiment's parts on generated domains."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.lab.datasets import domain_pairs
from privada.lab.datasets.domain_pairs import drifting
from privada.lab.experiments import reweighting
from privada.lab.experiments.registry import experiment
from privada.lab.experiments.reweighting import contenders, curves, headline, selection, tables
from privada.methods.reweighting import Penalties, cnvx_adap
from privada.report.exhibit import write
from privada.report.figure import Figure


@pytest.fixture(scope="module")
def pair():
    return drifting(3, domains=4, rows=450, n=300, d=5)


def test_the_experiment_needs_data():
    with pytest.raises(InputError, match="--data"):
        list(experiment("reweighting").run(runs=1, data=None, track=lambda items, _: items))


def test_ours_is_ahead_of_every_private_baseline_on_drifting_domains(pair):
    ours = reweighting.ours(pair, 4.0)
    errors = {
        name: contenders.error(pair, predicted)
        for name, predicted in reweighting.private_baselines(pair, 4.0)
    }
    assert len(errors) == 5 + 2 * (find_spec("opacus") is not None)
    assert ours < min(errors.values())


def test_every_private_method_is_held_to_the_range_of_the_public_labels(pair):
    low, high = contenders.label_range(pair)
    assert (low, high) == (pair.source.y.min(), pair.source.y.max())
    wild = np.where(pair.test.y > 0, 1e6, -1e6)
    held = np.where(pair.test.y > 0, high, low)
    assert contenders.error(pair, wild) == pytest.approx(np.mean((held - pair.test.y) ** 2))


def test_table_one_has_every_method(pair):
    errors = dict(reweighting.table_errors(pair))
    assert set(errors) == {"target", "KMM", "DM", "CnvxAdap"}
    assert errors["CnvxAdap"] < 1.1 * errors["target"]


def test_settings_come_from_public_rows_alone(pair):
    settings = reweighting.public_settings(pair)
    assert settings == reweighting.public_settings(replace(pair, train=pair.test, test=pair.train))


@pytest.fixture(scope="module")
def two_classes(pair):
    parts = {
        name: replace(getattr(pair, name), y=(getattr(pair, name).y > 0).astype(np.int64))
        for name in ("source", "train", "validation", "test")
    }
    return replace(pair, **parts, classes=2)


def test_the_gradient_mapping_falls_with_the_number_of_steps(two_classes):
    coef, norms = tables.nonconvex(two_classes, alpha=0.05, steps=300)
    assert len(norms) == 300
    assert min(norms) < 0.05 * norms[0]
    assert np.isfinite(coef).all()


def test_table_four_has_every_method_and_adaptation_helps(two_classes):
    wrong = dict(tables._classified(two_classes))
    assert list(wrong) == ["source", "target", "KMM", "NCnvxAdap"]
    assert wrong["NCnvxAdap"] <= wrong["source"]


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


def test_ranks_are_by_mean_error_and_the_worst_counts():
    def set_of(ours, other):
        return {epsilon: {"other": [other, other], "ours": [ours, ours]} for epsilon in contenders.EPSILONS}

    *figures, table = headline._ranks({"a": set_of(1.0, 2.0), "b": set_of(2.0, 1.0)}, runs=2)
    assert [figure.value for figure in figures] == [2, 2]
    assert table.rows[0][2] == "ours"
    assert table.rows[2][2] == "other"


def test_small_sets_take_more_splits_than_were_asked_for(pair):
    def reader(folder, seed):
        return replace(pair, test=replace(pair.test, X=pair.test.X[:59], y=pair.test.y[:59]))

    assert headline._enough(reader, None, range(200, 210)) == range(200, 241)
    assert headline._enough(
        lambda folder, seed: replace(reader(folder, seed), classes=2), None, range(10)
    ) == range(170)
    assert headline._enough(lambda folder, seed: pair, None, range(200, 220)) == range(200, 220)
    assert headline._enough(reader, None, range(200, 201)) == range(200, 201)  # a quick run


def test_private_baselines_of_two_classes(two_classes):
    names = [name for name, _ in contenders.private_baselines(two_classes, 4.0)]
    deep = ["DP-SGD (Opacus)", "DP-SGD (Opacus), public start"] if find_spec("opacus") else []
    assert names == [*deep, "noisy gradients", "objective perturbation"]


def test_the_whole_command_ends_on_small_generated_sets(monkeypatch, tmp_path, two_classes, pair):
    """Every figure, table and curve, with generated domains in the places of the real ones."""

    def number(folder, seed, **how):
        return pair

    def classes(folder, seed, **how):
        return two_classes

    monkeypatch.setattr(headline, "REGRESSIONS", {"gas": number})
    monkeypatch.setattr(tables, "REGRESSIONS", {"gas": number})
    monkeypatch.setattr(tables, "_small_gas", number)
    monkeypatch.setattr(domain_pairs, "classifications", lambda folder: {"adult": classes})
    monkeypatch.setattr(domain_pairs, "gas", number)
    monkeypatch.setattr(domain_pairs, "reviews", number)
    monkeypatch.setattr(domain_pairs, "adult", classes)
    monkeypatch.setattr(domain_pairs, "review_pairs", lambda: [("a", "b")])
    for name, value in {
        "EPSILONS": (4.0,),
        "SIZES": (150, 300),
        "ADULT_SIZES": (150, 300),
        "STEPS": 20,
    }.items():
        monkeypatch.setattr(curves, name, value)
    found = list(reweighting.run(runs=1, data=tmp_path))
    named = [item.figure for item in found if isinstance(item, Figure)]
    assert named == [
        "gas_mse_vs_nonprivate_eps1",
        "gas_mse_vs_nonprivate_eps4",
        "gas_mse_vs_public_only_eps1",
        "worst_rank_among_private_baselines",
        "worst_rank_among_private_baselines_eps4",
        "cnvxadap_worst_relative_mse",
    ]
    titles = [item.title.split(":")[0] for item in found if not isinstance(item, Figure)]
    assert titles == [
        "Private methods",
        "Table 1",
        "Table 3",
        "Table 4",
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Figure 4",
        "Theorem 4",
    ]
    for item in found:
        if not isinstance(item, Figure):
            write(item, tmp_path)
    assert len(list(tmp_path.glob("*.csv"))) == len(titles)
