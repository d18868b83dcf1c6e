import numpy as np
import pytest

from privada.methods.clustering import GridPyramid, LocalMeans
from privada.methods.clustering.learner.default_question import default_question, scale
from privada.privacy import PureDP
from tests.methods.clustering.generated import RADIUS, make_grids

AR = "add/remove"


@pytest.fixture(scope="module")
def pair():
    return make_grids(seed=5, source_size=3000, target_size=400)


def test_the_question_follows_from_public_quantities_alone(pair):
    guarantee = PureDP(epsilon=3, relation=AR)
    one = default_question(pair.target, n_centers=9, guarantee=guarantee, radius=RADIUS)
    two = default_question(pair.target, n_centers=9, guarantee=guarantee, radius=RADIUS)
    assert one == two
    assert isinstance(one, GridPyramid)
    finer = default_question(pair.target, n_centers=70, guarantee=guarantee, radius=RADIUS)
    assert finer.levels[-1] > one.levels[-1]
    wide = np.random.default_rng(0).uniform(-0.1, 0.1, size=(300, 8))
    local = default_question(wide, n_centers=9, guarantee=guarantee, radius=RADIUS)
    assert isinstance(local, LocalMeans)
    richer = default_question(wide, n_centers=9, guarantee=PureDP(epsilon=9, relation=AR), radius=RADIUS)
    assert len(richer.cells) > len(local.cells)


def test_the_scale_is_the_mean_distance_to_own_centres():
    target = np.array([[0.0], [0.2], [1.0], [1.2]])
    assert scale(target, 2) == pytest.approx(0.1)
    assert scale(target, 4) == pytest.approx(1e-9), "never zero: a resolution follows from it"
