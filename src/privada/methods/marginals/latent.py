"""Coordinates in which a public source is simple: the code of a variational autoencoder (extra ``deep``).

Rows of many features often lie near a surface of few dimensions. A Gaussian process in the features' own
distances does not know the surface; in the code of an autoencoder whose prior is a mixture of Gaussians a
label changes at a more even pace. The code has as many dimensions as the source's nearest neighbours say
(Facco et al., Scientific Reports 2017), and stands beside the whitened features: where it tells nothing, they
still do. Public rows alone are used; a learner measures distances in it after the answer, so nothing of it
goes to an owner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.marginals.public import EVENNESS, some, whitening

FloatArray = npt.NDArray[np.float64]
WIDTH = 64  # of the hidden layers
COMPONENTS = 10  # of the prior; 6 to 16 made little difference on generated sets
STEPS, BATCH, RATE, WARM = 12_000, 500, 6e-3, 0.1
LEAST_NOISE = 0.01  # of a reconstructed feature, in its deviations
BESIDE = 0.5  # spread of the whitened features, that of the code being 1
LEAST_ROWS = 100
KINDS = ("whitened", "latent")


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentCoordinates:
    """A public map of standardised rows: an autoencoder's code, and whitened features beside it.

    Attributes
    ----------
    layers : tuple of (weights, shift)
        With a hyperbolic tangent after each.
    out, direct : arrays of shape (width, dimension) and (features, dimension)
        The code is what the layers give times ``out`` and the row itself times ``direct``, but for a shift.
    beside : array of shape (features, features)
        Whitening.
    """

    layers: tuple[tuple[FloatArray, FloatArray], ...]
    out: FloatArray
    direct: FloatArray
    beside: FloatArray

    @property
    def dimension(self) -> int:
        """Of the code."""
        return int(self.direct.shape[1])

    def fits(self, width: int) -> None:
        """Raise `InputError` unless rows have the features that it was learnt from."""
        if width != len(self.direct):
            raise InputError(f"Expected coordinates of {width} features, got {len(self.direct)}.")

    def __call__(self, X: FloatArray) -> FloatArray:
        """Coordinates of standardised rows."""
        self.fits(X.shape[1])
        hidden = X
        for weights, shift in self.layers:
            hidden = np.tanh(hidden @ weights + shift)
        return np.hstack([hidden @ self.out + X @ self.direct, X @ self.beside])


def intrinsic_dimension(rows: FloatArray) -> int:
    """How many dimensions rows lie along, by the ratio of the distances to two nearest neighbours.

    >>> rng = np.random.default_rng(0)
    >>> plane = rng.normal(size=(1000, 2))
    >>> intrinsic_dimension(np.hstack([plane, np.tanh(plane @ rng.normal(size=(2, 5)))]))
    2
    """
    from sklearn.neighbors import NearestNeighbors

    rows = rows @ whitening(rows, 1.0)
    near = NearestNeighbors(n_neighbors=3).fit(rows).kneighbors(rows)[0][:, 1:]
    near = near[near[:, 0] > 0]
    ratios = np.log(near[:, 1] / near[:, 0]).sum()
    found = round((len(near) - 1) / ratios) if ratios > 0 else rows.shape[1]
    return int(np.clip(found, 1, min(rows.shape)))


def check(given: Any, rows: FloatArray) -> None:
    """Refuse, before anything is asked, what no coordinates can be had of afterwards."""
    if isinstance(given, LatentCoordinates):
        given.fits(rows.shape[1])
        return
    _check.one_of(KINDS, coordinates=given)
    if given == "latent":
        _enough(rows)
        needed_torch()


def chosen(given: Any, rows: FloatArray, seed: int) -> LatentCoordinates | None:
    """Coordinates as settings name them: none for "whitened"; "latent" are learnt from public rows."""
    if isinstance(given, LatentCoordinates):
        return given
    return latent_coordinates(rows, seed=seed) if given == "latent" else None


def _enough(rows: FloatArray) -> None:
    if len(rows) < LEAST_ROWS:
        raise InputError(
            f"Expected at least {LEAST_ROWS} public rows for latent coordinates, got {len(rows)}."
        )


def latent_coordinates(rows: FloatArray, *, dimension: int | None = None, seed: int = 0) -> LatentCoordinates:
    """Learn coordinates from standardised public rows; half a minute for thousands of them.

    Parameters
    ----------
    rows : array
        Public.
    dimension : int, optional
        Of the code; `intrinsic_dimension` by default.
    seed : int
        Of public randomness.
    """
    rows = _check.matrix(rows=rows)
    _enough(rows)
    rows = some(rows, seed)
    if dimension is None:
        dimension = intrinsic_dimension(rows)
    elif _check.count(dimension=dimension) > min(rows.shape):
        raise InputError(f"Expected at most {min(rows.shape)} latent dimensions, got {dimension}.")
    torch = needed_torch()
    with _alone(torch, seed):
        model = _Autoencoder(torch, rows, dimension)
        model.train()
        return model.coordinates(rows)


def needed_torch() -> Any:
    """Torch, or an `InputError` that says how to get it."""
    try:
        import torch
    except ImportError:
        raise InputError("Latent coordinates need torch: pip install 'privada[deep]'.") from None
    return torch


@contextmanager
def _alone(torch: Any, seed: int) -> Iterator[None]:
    """A seed and one thread, enough for networks so small; both are as they were afterwards."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


class _Autoencoder:
    """A variational autoencoder: principal components at first, with a mixture of Gaussians as prior."""

    def __init__(self, torch: Any, rows: FloatArray, dimension: int) -> None:
        nn = torch.nn
        self.torch, self.rows = torch, torch.tensor(rows, dtype=torch.float32)
        features, self.dimension = rows.shape[1], dimension
        self.encoder, self.decoder = self._layers(features, dimension), self._layers(dimension, features)
        self.spread = nn.Sequential(
            nn.Linear(features, WIDTH // 2), nn.Tanh(), nn.Linear(WIDTH // 2, dimension)
        )
        self.direct, self.back = nn.Linear(features, dimension), nn.Linear(dimension, features)
        self.noise = nn.Parameter(torch.full((features,), -1.0))
        self._start_linear()
        self._start_prior()

    def _layers(self, inputs: int, outputs: int) -> Any:
        nn = self.torch.nn
        made = nn.Sequential(
            nn.Linear(inputs, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, outputs)
        )
        with self.torch.no_grad():
            made[-1].weight.mul_(0.1)
            made[-1].bias.zero_()
        return made

    def _start_linear(self) -> None:
        torch, centre = self.torch, self.rows.mean(0)
        _, sizes, directions = torch.linalg.svd(self.rows - centre, full_matrices=False)
        widths = (sizes / math.sqrt(len(self.rows))).clamp(min=1e-6)[: self.dimension]
        kept = directions[: self.dimension]
        with torch.no_grad():
            self.direct.weight.copy_(kept / widths[:, None])
            self.direct.bias.copy_(-(kept / widths[:, None]) @ centre)
            self.back.weight.copy_(kept.T * widths)
            self.back.bias.copy_(centre)
            self.spread[-1].bias.fill_(-2.0)

    def _start_prior(self) -> None:
        from sklearn.cluster import KMeans

        nn, torch = self.torch.nn, self.torch
        code = self.direct(self.rows).detach().numpy()
        found = KMeans(n_clusters=COMPONENTS, n_init=3, random_state=0).fit(code)
        self.means = nn.Parameter(torch.tensor(found.cluster_centers_))
        self.shares = nn.Parameter(torch.zeros(COMPONENTS))
        self.width = nn.Parameter(torch.tensor(math.log(0.8)))

    def parameters(self) -> Iterator[Any]:
        """All that is learnt."""
        for module in (self.encoder, self.decoder, self.spread, self.direct, self.back):
            yield from module.parameters()
        yield from (self.noise, self.means, self.shares, self.width)

    def train(self) -> None:
        """Adam, its rate rising and then falling along a cosine."""
        torch, batch = self.torch, min(BATCH, len(self.rows))
        optimiser = torch.optim.Adam(list(self.parameters()), lr=RATE, betas=(0.9, 0.99), fused=True)
        for step in range(STEPS):
            done = step / STEPS
            fallen = 0.5 + 0.5 * math.cos(math.pi * max(0.0, (done - WARM) / (1 - WARM)))
            optimiser.param_groups[0]["lr"] = RATE * min(1.0, done / WARM) * fallen
            optimiser.zero_grad()
            self.loss(self.rows[torch.randint(len(self.rows), (batch,))]).backward()
            optimiser.step()

    def loss(self, rows: Any) -> Any:
        """The negative evidence bound of an average row; the prior's part by Jensen's inequality."""
        torch = self.torch
        mean, spread = self.encoder(rows) + self.direct(rows), self.spread(rows)
        deviation = torch.exp(spread)
        code = mean + deviation * torch.randn(mean.shape)
        noise = self.noise.clamp(min=math.log(LEAST_NOISE))
        off = (rows - self.decoder(code) - self.back(code)) * torch.exp(-noise)
        apart = (
            (mean**2 + deviation**2).sum(1, keepdim=True) - 2 * mean @ self.means.T + (self.means**2).sum(1)
        )
        by_component = torch.log_softmax(self.shares, 0) - apart * torch.exp(-2 * self.width) / 2
        prior = torch.logsumexp(by_component, 1).mean() - self.dimension * self.width
        return (off**2).sum(1).mean() / 2 + noise.sum() - prior - spread.sum(1).mean()

    def coordinates(self, rows: FloatArray) -> LatentCoordinates:
        """The mean of the code, without torch, beside whitened features."""
        first, second, last = (self.encoder[place] for place in (0, 2, 4))
        code = (self.encoder(self.rows) + self.direct(self.rows)).detach().numpy()
        scale = math.sqrt(float(code.var(axis=0).sum())) or 1.0
        beside = whitening(rows, EVENNESS)
        size = math.sqrt(float((rows @ beside).var(axis=0).sum())) or 1.0
        return LatentCoordinates(
            layers=tuple((_plain(layer.weight).T, _plain(layer.bias)) for layer in (first, second)),
            out=_plain(last.weight).T / scale,
            direct=_plain(self.direct.weight).T / scale,
            beside=BESIDE * beside / size,
        )


def _plain(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().numpy(), dtype=np.float64)


__all__ = ["LatentCoordinates", "intrinsic_dimension", "latent_coordinates"]
