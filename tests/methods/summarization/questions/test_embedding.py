import numpy as np
import pytest
from scipy.spatial.distance import cdist

from privada.exceptions import InputError
from privada.methods.summarization import FourierEmbedding, mmd2

X = np.random.default_rng(0).normal(size=(60, 5))


@pytest.mark.parametrize("orthogonal", [True, False])
def test_rows_have_norm_one_and_products_are_the_kernel(orthogonal):
    embedding = FourierEmbedding.of(
        width=5, n_features=4000, gamma=0.2, orthogonal=orthogonal, random_state=1
    )
    H = embedding.transform(X)
    assert np.all(np.linalg.norm(H, axis=1) <= 1)
    assert np.allclose(np.linalg.norm(H, axis=1), 1, atol=1e-9)
    assert np.abs(H @ H.T - np.exp(-0.2 * cdist(X, X, "sqeuclidean"))).max() < 0.1


def test_orthogonal_frequencies_have_less_error():
    kernel = np.exp(-0.2 * cdist(X, X, "sqeuclidean"))

    def error(orthogonal, seed):
        made = FourierEmbedding.of(
            width=5, n_features=20, gamma=0.2, orthogonal=orthogonal, random_state=seed
        )
        H = made.transform(X)
        return np.mean((H @ H.T - kernel) ** 2)

    errors = np.array([[error(kind, seed) for kind in (True, False)] for seed in range(40)])
    assert errors[:, 0].mean() < 0.9 * errors[:, 1].mean()


def test_a_row_is_embedded_alike_wherever_it_stands():
    embedding = FourierEmbedding.of(width=5, n_features=30, gamma=0.2, random_state=1)
    alone = np.vstack([embedding.transform(row[None]) for row in X])
    assert embedding.transform(X).tobytes() == alone.tobytes()
    assert embedding.transform(X[::-1])[::-1].tobytes() == alone.tobytes()


def test_mmd_is_the_definition():
    Y = X[:20] + 0.5
    kernel = [np.exp(-0.3 * cdist(A, B, "sqeuclidean")).mean() for A, B in ((X, X), (X, Y), (Y, Y))]
    assert mmd2(X, Y, gamma=0.3) == pytest.approx(kernel[0] - 2 * kernel[1] + kernel[2])
    assert mmd2(X, X, gamma=0.3) == 0


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"n_features": 7}, "n_features to be even"),
        ({"gamma": 0}, "gamma > 0"),
        ({"width": 0}, "width"),
    ],
)
def test_bad_parameters_are_named(wrong, match):
    with pytest.raises(InputError, match=match):
        FourierEmbedding.of(**({"width": 2, "n_features": 8, "gamma": 1.0} | wrong))
    with pytest.raises(InputError, match="columns"):
        FourierEmbedding.of(width=2, n_features=8, gamma=1.0).transform(X)
    with pytest.raises(InputError, match="finite"):
        FourierEmbedding(frequencies=[[np.inf, 1.0]])
