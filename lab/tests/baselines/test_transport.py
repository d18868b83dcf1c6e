import numpy as np

from privada_lab.baselines import OTDA, source_only, target_only


def case(seed=0):
    rng = np.random.default_rng(seed)
    y, yt = rng.integers(3, size=120), rng.integers(3, size=90)
    places = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.2]])
    return (
        places[y] + rng.normal(0, 0.2, (120, 2)),
        y,
        places[yt] + rng.normal(0, 0.2, (90, 2)) + [0.9, 0.0],
        yt,
    )


def test_transport_beats_the_source_alone_where_the_target_is_moved():
    X, y, Xt, yt = case()
    alone = float((source_only(X, y).predict(Xt) == yt).mean())
    model = OTDA(reg_e=0.02).fit(X, y, Xt)
    moved = float((model.predict(Xt) == yt).mean())
    assert moved > 0.9 > alone
    assert model.mapped_.shape == X.shape
    assert float((target_only(Xt, yt).predict(Xt) == yt).mean()) > 0.95


def test_known_target_labels_forbid_other_classes():
    X, y, Xt, yt = case()
    known = np.full(len(yt), -1)
    for code in range(3):
        known[np.flatnonzero(yt == code)[:5]] = code
    model = OTDA(reg_e=0.02).fit(X, y, Xt, known)
    for at in np.flatnonzero(known >= 0):
        assert model.coupling_[y != known[at], at].sum() < 1e-6
    assert float((model.predict(Xt) == yt).mean()) > 0.9
