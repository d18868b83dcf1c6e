"""The estimators on torch modules: what they learn, what they keep, what they refuse."""

import numpy as np
import pytest
from sklearn.base import clone

from privada.exceptions import InputError, RehearsalWarning
from privada.methods.reweighting import DeepReweightedClassifier, DeepReweightedRegressor
from privada.methods.reweighting.questions import network

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
XS, XT = RNG.normal(size=(300, 3)), RNG.normal(size=(1500, 3))
TRUE = XT[:, 0] + XT[:, 1] > 0


def fit(model, ys, yt):
    with pytest.warns(RehearsalWarning):
        return model.fit(XS, ys, XT, yt)


class Doubled(torch.nn.Module):
    """A module whose layers cannot be declared."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(3, 8), torch.nn.Linear(8, 2)

    def forward(self, x):
        inside = torch.tanh(self.first(x))
        return self.second(inside * inside + inside)


def test_a_classifier_learns_more_of_the_target_than_the_source_tells():
    """Two seeds of the noise: each ahead of the public fit."""
    labels = np.where(XS[:, 0] > 0, "yes", "no")
    public = None
    for seed in range(2):
        model = DeepReweightedClassifier(epsilon=2, delta=1e-6, steps=30, random_state=0, insecure_seed=seed)
        fit(model, labels, np.where(TRUE, "yes", "no"))
        score = model.score(XT, np.where(TRUE, "yes", "no"))
        public = (np.where(XT[:, 0] > 0, "yes", "no") == np.where(TRUE, "yes", "no")).mean()
        assert score > public + 0.08
        assert model.predict_proba(XT[:5]).sum(axis=1) == pytest.approx(1)
    assert str(model.guarantee_) == "(ε = 2, δ = 1e-06), replace-one row"


def test_any_module_will_do_and_is_forgotten_afterwards():
    model = DeepReweightedClassifier(Doubled(), rho=0.5, steps=10, random_state=0, insecure_seed=1)
    fit(model, (XS[:, 0] > 0).astype(int), TRUE.astype(int))
    assert isinstance(model.module_, Doubled)
    assert set(np.unique(model.predict(XT))) <= {0, 1}
    assert not network._KEPT
    assert not any(part.requires_grad and part.grad is not None for part in model.module_.parameters())


def test_a_regressor_keeps_the_labels_units():
    yt = 100 + 10 * (XT[:, 0] + XT[:, 1])
    model = DeepReweightedRegressor(epsilon=4, delta=1e-6, steps=30, random_state=0, insecure_seed=0)
    fit(model, 100 + 10 * XS[:, 0], yt)
    public = 1 - np.var(10 * XT[:, 1]) / np.var(yt)
    assert model.score(XT, yt) > public + 0.1
    narrow = fit(clone(model).set_params(label_bounds=(98, 102)), 100 + 10 * XS[:, 0], yt).predict(XT)
    assert (narrow.min(), narrow.max()) == (98, 102)


def test_rehearsals_repeat_and_clones_are_fresh():
    model = DeepReweightedClassifier(rho=1.0, steps=5, random_state=0, insecure_seed=3)
    ys, yt = (XS[:, 0] > 0).astype(int), TRUE.astype(int)
    first = fit(model, ys, yt).predict_proba(XT[:9])
    assert np.array_equal(fit(clone(model), ys, yt).predict_proba(XT[:9]), first)
    assert not [key for key in vars(clone(model)) if key.endswith("_")]


def test_torchs_own_generator_is_left_alone():
    before = torch.get_rng_state()
    fit(DeepReweightedClassifier(rho=1.0, steps=3, random_state=0, insecure_seed=3), TRUE[:300], TRUE)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"module": "net"}, "torch module"),
        ({"module": torch.nn.Linear(3, 5)}, "2 outputs"),
        ({"module": torch.nn.Linear(4, 2)}, "rows of 3"),
        ({"alpha": 0.0}, "alpha"),
        ({"steps": 0}, "steps"),
        ({"clip": -1.0}, "clip"),
    ],
    ids=["text", "outputs", "width", "alpha", "steps", "clip"],
)
def test_bad_settings_are_named(change, said):
    with pytest.raises(InputError, match=said):
        DeepReweightedClassifier(**({"rho": 1.0} | change)).fit(XS, TRUE[:300], XT, TRUE)


def test_rows_that_are_not_finite_are_refused():
    wrong = XT.copy()
    wrong[3, 1] = np.nan
    with pytest.raises(Exception, match="row|finite|missing"):
        DeepReweightedClassifier(rho=1.0, steps=2).fit(XS, TRUE[:300], wrong, TRUE)


class Normed(torch.nn.Module):
    """Batch statistics and dropout: what differs between training and use."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inside = torch.nn.Sequential(
            torch.nn.Linear(3, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.5), torch.nn.Linear(6, 2)
        )

    def forward(self, x):
        return self.inside(x)


def test_private_rows_never_reach_batch_statistics_and_the_callers_module_is_left_alone():
    """The fitted module's running means are the given one's; so is everything of the given one."""
    given = Normed()
    before = {name: value.clone() for name, value in given.state_dict().items()}
    model = DeepReweightedClassifier(given, rho=0.5, steps=4, random_state=0, insecure_seed=1)
    fit(model, (XS[:, 0] > 0).astype(int), TRUE.astype(int))
    assert model.module_ is not given
    for name, value in given.state_dict().items():
        assert torch.equal(value, before[name])
    fitted = dict(model.module_.named_buffers())
    assert fitted
    for name, value in fitted.items():
        assert torch.equal(value, before[name])
    assert not model.module_.training
    assert model.predict_proba(XT[:7]) == pytest.approx(model.predict_proba(XT)[:7], abs=1e-5)
