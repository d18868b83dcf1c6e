import numpy as np
import pytest
from sklearn.base import clone

from privada import Owner, Schema, SourceTargetMedoids
from privada.exceptions import InputError, PrivadaWarning, RehearsalWarning, SchemaError
from privada.methods.clustering import NearestMeans
from privada.methods.clustering.learner.medoids import cost, medoids
from privada.privacy import PureDP
from tests.methods.clustering.generated import RADIUS, make_grids

AR = "add/remove"


@pytest.fixture(scope="module")
def pair():
    return make_grids(seed=5, source_size=3000, target_size=400)


@pytest.mark.parametrize("price", [{"epsilon": 3.0}, {"rho": 3.0}, {"epsilon": 3.0, "delta": 1e-6}])
def test_it_closes_most_of_the_gap(pair, price):
    model = SourceTargetMedoids(9, norm_bound=RADIUS, insecure_seed=1, random_state=0, n_draws=8, **price)
    with pytest.warns(RehearsalWarning):
        model.fit(pair.source, Xt=pair.target)
    ours = cost(pair.target, pair.source, model.cluster_centers_)
    ignoring = cost(pair.target, pair.source, pair.target[medoids(pair.target, 9).indices])
    caps = np.asarray([cost(pair.target[i : i + 1], pair.source, None) for i in range(len(pair.target))])
    seeing = cost(pair.target, pair.source, pair.target[medoids(pair.target, 9, caps=caps).indices])
    assert ignoring - ours > 0.9 * (ignoring - seeing)
    assert np.array_equal(pair.target[model.indices_], model.cluster_centers_)
    assert str(model.guarantee_).endswith("add/remove one row")


def test_skada_and_pot_forms_agree(pair):
    both = np.vstack([pair.source, pair.target])
    domain = np.r_[np.ones(len(pair.source)), -np.ones(len(pair.target))]
    model = SourceTargetMedoids(5, norm_bound=RADIUS, epsilon=3, insecure_seed=2, random_state=0, n_draws=4)
    with pytest.warns(RehearsalWarning):
        split = clone(model).fit(pair.source, None, pair.target)
    with pytest.warns(RehearsalWarning):
        joint = clone(model).fit(both, sample_domain=domain)
    assert np.array_equal(split.indices_, joint.indices_)
    assert split.predict(pair.target[split.indices_]).tolist() == list(range(5))


def test_a_forecast_costs_nothing_and_is_kept(pair):
    model = SourceTargetMedoids(9, norm_bound=RADIUS, epsilon=3, insecure_seed=1, random_state=0, n_draws=4)
    said = model.forecast(pair.target)
    assert "choosing by the public target alone" in str(said)
    with pytest.warns(RehearsalWarning):
        model.fit(pair.source, Xt=pair.target)
    assert model.forecast_ == said
    assert said.worthwhile
    announced = model.set_params(source_size=3000).forecast(pair.target)
    assert announced.ratio < said.ratio, "more rows tell more"


def test_a_release_that_tells_nothing_is_warned_of(pair):
    model = SourceTargetMedoids(3, norm_bound=RADIUS, epsilon=0.01, n_draws=2)
    with pytest.warns(PrivadaWarning, match="keep the budget"):
        model.fit(pair.source, Xt=pair.target)
    assert not model.forecast_.worthwhile


def test_the_expected_cost_has_a_band(pair):
    model = SourceTargetMedoids(9, norm_bound=RADIUS, epsilon=3, random_state=0).fit(
        pair.source, Xt=pair.target
    )
    low, high = model.cost_band_
    assert low <= model.cost_ <= high <= cost(pair.target, None, model.cluster_centers_)
    assert low < 1.5 * cost(pair.target, pair.source, model.cluster_centers_)


def test_many_features(pair):
    rng = np.random.default_rng(1)
    target = np.clip(rng.normal(0, 0.08, size=(250, 6)), -0.2, 0.2)
    source = target[target[:, 0] < 0].repeat(30, axis=0) + rng.normal(0, 0.01, size=(1, 6))
    model = SourceTargetMedoids(6, norm_bound=RADIUS, epsilon=3, insecure_seed=3, random_state=0)
    with pytest.warns(RehearsalWarning):
        model.fit(source, Xt=target)
    ignoring = cost(target, source, target[medoids(target, 6).indices])
    assert cost(target, source, model.cluster_centers_) < ignoring


def test_another_question_can_be_asked(pair):
    nna = NearestMeans(cells=pair.target[::20], radius=RADIUS, guarantee=PureDP(epsilon=3, relation=AR))
    model = SourceTargetMedoids(5, norm_bound=RADIUS, epsilon=3, question=nna).fit(
        pair.source, Xt=pair.target
    )
    assert model.release_.kind == "clustering.nna"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm_bound": None}, "none is guessed"),
        ({"norm_bound": 0.01}, "target inside the ball"),
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"n_centers": -1}, "n_centers"),
        ({"n_centers": 10_000}, "at most the 400 target points"),
        ({"n_draws": 0}, "n_draws"),
    ],
)
def test_nothing_is_guessed(pair, change, message):
    good = {"n_centers": 3, "norm_bound": RADIUS, "epsilon": 1.0}
    with pytest.raises(InputError, match=message):
        SourceTargetMedoids(**(good | change)).fit(pair.source, Xt=pair.target)


def test_bad_rows(pair):
    model = SourceTargetMedoids(3, norm_bound=RADIUS, epsilon=1.0)
    with pytest.raises(InputError, match="one width"):
        model.fit(np.zeros((3, 5)), Xt=pair.target)
    with pytest.raises(InputError, match="Xt"):
        model.fit(pair.source)
    with pytest.raises(InputError, match="finite"):
        model.fit(pair.source, Xt=np.array([[np.nan, 0.0]] * 5))
    with pytest.raises(SchemaError, match="missing"):
        model.fit(np.array([[np.nan, 0.0]]), Xt=pair.target)
    with pytest.raises(InputError, match="sample_domain"):
        model.fit(pair.target, sample_domain=np.zeros(len(pair.target)))


def test_an_empty_source_and_duplicates(pair):
    twice = np.repeat(pair.target[:30], 2, axis=0)
    model = SourceTargetMedoids(3, norm_bound=RADIUS, epsilon=1.0, n_draws=4).fit(np.empty((0, 2)), Xt=twice)
    assert len(np.unique(model.cluster_centers_, axis=0)) == 3
    assert len(model.set_params(n_centers=0).fit(pair.source, Xt=twice).indices_) == 0


def test_several_owners_are_refused(pair):
    owner = Owner(
        pair.source,
        schema=Schema.of_numbers(bounds=(-RADIUS, RADIUS), width=2),
        dataset="s",
        budget=PureDP(epsilon=3, relation=AR),
    )
    with pytest.raises(InputError, match="one Owner"):
        SourceTargetMedoids(3, norm_bound=RADIUS, epsilon=1.0).fit(Xt=pair.target, owner={"a": owner})
    assert owner.ledger.spent("s") is None
