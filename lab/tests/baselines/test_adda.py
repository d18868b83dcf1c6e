"""Adversarial adaptation: ahead of the source alone on a generated shift, and its refusals."""

import numpy as np
import pytest
from sklearn.base import clone

from privada.exceptions import InputError
from privada_lab.baselines import ADDA, source_only

torch = pytest.importorskip("torch")


def shift(seed, n=180, width=8, angle=0.8, far=1.5):
    """Three classes around random centres; the target is turned in pairs of coordinates and moved."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 2, size=(3, width))
    y, yt = np.repeat(np.arange(3), n // 3), np.repeat(np.arange(3), n // 3)
    X, Z = (centres[labels] + rng.normal(0, 0.7, size=(n, width)) for labels in (y, yt))
    turn = np.kron(np.eye(width // 2), [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return X, y, Z @ turn.T + far * rng.normal(size=width), yt


def test_it_beats_the_source_alone_on_average_and_is_never_far_behind():
    gains = []
    for seed in range(10, 16):  # others than those that chose its settings
        X, y, Z, yt = shift(seed)
        gains.append(ADDA().fit(X, y, Z).score(Z, yt) - source_only(X, y).score(Z, yt))
    assert np.mean(gains) > 0.04
    assert min(gains) > -0.1


def test_it_moves_rows_and_not_labels():
    """The order of the target's rows says nothing, labels of any kind come back, starts repeat."""
    X, y, Z, _ = shift(0)
    names = np.array(["a", "b", "c"])[y]
    model = ADDA(steps=20, random_state=4).fit(X, names, Z)
    assert model.predict_proba(Z).sum(axis=1) == pytest.approx(1)
    assert set(model.predict(Z)) <= set("abc")
    assert np.array_equal(clone(model).fit(X, names, Z).predict_proba(Z), model.predict_proba(Z))
    turned = clone(model).fit(X, names, Z[::-1])
    assert turned.predict_proba(Z) == pytest.approx(model.predict_proba(Z), abs=1e-6)


def test_torchs_generator_is_left_alone():
    before = torch.get_rng_state()
    X, y, Z, _ = shift(1)
    ADDA(steps=2).fit(X, y, Z)
    assert torch.equal(torch.get_rng_state(), before)


def test_constant_features_and_small_targets_are_no_trouble():
    X, y, Z, _ = shift(2)
    X[:, 0] = Z[:, 0] = 3.0
    assert np.isfinite(ADDA(steps=5).fit(X, y, Z[:2]).predict_proba(Z)).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [({"width": 0}, "width"), ({"steps": 0}, "steps"), ({"encoder_rate": 0.0}, "encoder_rate")],
    ids=["width", "steps", "rate"],
)
def test_bad_settings_are_named(change, said):
    X, y, Z, _ = shift(3)
    with pytest.raises(InputError, match=said):
        ADDA(**change).fit(X, y, Z)


def test_bad_rows_are_named():
    X, y, Z, _ = shift(3)
    with pytest.raises(InputError, match="Xt"):
        ADDA(steps=1).fit(X, y, Z[:, :3])
    with pytest.raises(InputError, match="finite"):
        ADDA(steps=1).fit(X, y, np.full_like(Z, np.nan))
    with pytest.raises(InputError, match="two classes"):
        ADDA(steps=1).fit(X, np.zeros(len(X)), Z)
    with pytest.raises(InputError, match="one label"):
        ADDA(steps=1).fit(X, y[:5], Z)
