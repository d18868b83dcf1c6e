"""DP-GAN: a Wasserstein generator whose critic sees private rows through noisy gradients alone.

The critic (two hidden layers, clipped weights) is trained T times on the difference of its mean on
generated points and on private rows. Its gradient on private rows is clipped for each row to norm C, summed
in whole grid steps and released with Gaussian noise; everything else, the generator included, sees only what
was released. Points drawn from the generator are post-processing.

*Sensitivity.* Add/remove: C. Replace-one: 2C and the grid's slack ``step √P``, P the number of the critic's
parameters. T releases at μ/√T compose exactly to μ. Batches are full: at equal privacy a subsample has
the noisier gradient, exact composition needs no amplification theorem, and so small a critic is quick.
A row's gradient is computed by one compiled loop over that row alone: in a batched product of
floats, other rows could move its last bits. One too large for a float counts as 0.

There is no pure variant: Gaussian noise needs δ or ρ. Needs the extra ``deep`` (torch), for the public half.

References: L. Xie et al., *Differentially private generative adversarial network*, 2018; M. Arjovsky et al.,
*Wasserstein generative adversarial networks*, ICML 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.privacy.bounds import Ball, Grid
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Mechanism, Plan, gaussian_event
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private import _kernels
from privada_lab.baselines.private._asking import BaselineQuestion
from privada_lab.baselines.private.tree_kmeans import clipped_rows

SLOPE = 0.2  # of the rectifiers below 0
SIZE_SHARE = 0.02  # of μ², for a noisy number of rows
LATENT = 8
FAKES = 256


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GeneratedPoints(BaselineQuestion):
    """Ask for points of a generator that is trained at the owner's.

    Parameters
    ----------
    n_points, width : int
    norm_bound : float
        Rows are clipped to this norm.
    n_steps : int
        Noisy gradients of the critic.
    critic_steps : int
        How many of them for each step of the generator.
    hidden : int
        Units of each hidden layer.
    clip : float
        Norm C of one row's gradient, for rows scaled to norm 1.
    rate, weight_bound : float
        Step size, and the bound of the critic's weights.
    random_state : int
        Of the networks' start and the generator's input: public.

    Privacy
    -------
    Unit: one row (a person with m rows: m times as far). Add/remove or replace-one. Sensitivity and
    proof: the module's docstring.
    """

    n_points: int
    width: int
    norm_bound: float
    n_steps: int = 300
    critic_steps: int = 1
    hidden: int = 32
    clip: float = 1.0
    rate: float = 5e-3
    weight_bound: float = 0.3
    random_state: int = 0
    kind: ClassVar[str] = "baselines.gan"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.gan:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        for name in ("n_points", "width", "n_steps", "critic_steps", "hidden"):
            _check.count(**{name: getattr(self, name)})
        for name in ("norm_bound", "clip", "rate", "weight_bound"):
            _check.positive(**{name: getattr(self, name)})
        _check.count(least=0, random_state=self.random_state)
        if isinstance(self.guarantee, PureDP):
            raise InputError(f"A generator is asked for with delta, or for rho, not for {self.guarantee}.")

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected width {schema.width}, got {self.width}.")

    @property
    def parameters(self) -> int:
        """Number of the critic's parameters."""
        return self.hidden * (self.width + 1) + self.hidden * (self.hidden + 1) + self.hidden

    def planned(self) -> Plan:
        """A count of the rows, and equal noise on every gradient."""
        mu = self.guarantee.gaussian_mu()
        each = mu * math.sqrt((1 - SIZE_SHARE) / self.n_steps)
        grid = Grid.finer_than(self.clip / each * 2.0**-20)
        slack = grid.step * math.sqrt(self.parameters)
        reach = self.rows * (2 * self.clip + slack if self.replaces else self.clip)
        step = Gaussian.calibrated(sensitivity=reach, mu=each, grid=grid)
        size = Gaussian.calibrated(sensitivity=float(self.rows), mu=mu * math.sqrt(SIZE_SHARE), whole=True)
        draws: dict[str, Mechanism] = {"size": size}
        draws |= {f"gradient {t}": step for t in range(self.n_steps)}
        total = size.mu**2 + self.n_steps * step.mu**2
        return Plan(draws=draws, event=gaussian_event(math.sqrt(total)))


def answer(question: GeneratedPoints, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Train, with noisy gradients of the rows; then generate."""
    X = clipped_rows(rows, question.norm_bound) / question.norm_bound
    counting, stepping = question.plan.lattice("size"), question.plan.lattice("gradient 0")
    size = max(1.0, float(draw("size", counting.place([len(X)]))[0]))
    nets, made = _Networks(question), []
    for t in range(question.n_steps):
        real = draw(f"gradient {t}", _gradients(question, X, nets, stepping.grid)) / size
        made.append(nets.generate(FAKES))
        fake = stepping.grid.values(_gradients(question, made[-1], nets, stepping.grid)) / FAKES
        nets.criticise(fake - real)
        if (t + 1) % question.critic_steps == 0:
            nets.improve()
    points = _drawn(question, made[len(made) // 2 :]) * question.norm_bound
    return {"centers": Ball(radius=question.norm_bound).clip(points), "weights": np.ones(len(points))}


def _drawn(question: GeneratedPoints, made: list[FloatArray]) -> FloatArray:
    """Points of the later generators, in equal parts: one alone circles around what the critic saw."""
    pool = np.concatenate(made)
    rng = np.random.default_rng(question.random_state)
    return pool[rng.choice(len(pool), size=question.n_points, replace=question.n_points > len(pool))]


def _gradients(
    question: GeneratedPoints, X: FloatArray, nets: _Networks, grid: Grid
) -> npt.NDArray[np.int64]:
    """Sum of the rows' clipped gradients in whole steps; generated rows are clipped as private ones are."""
    sums = np.zeros(question.parameters, dtype=np.int64)
    inside = question.clip * (1 - 2.0**-40)
    _kernels.add_critic_gradients(sums, X, *nets.weights(), SLOPE, inside, 1 / grid.step)
    return sums


class _Networks:
    """Critic and generator: the public half. It receives noisy gradients and nothing else about the rows."""

    def __init__(self, question: GeneratedPoints) -> None:
        torch = _torch()
        self._source = torch.Generator().manual_seed(question.random_state)
        self._bound, self._slope = question.weight_bound, SLOPE
        hidden, width = question.hidden, question.width
        self._critic = [
            self._start(shape) for shape in ((hidden, width + 1), (hidden, hidden + 1), (hidden,))
        ]
        shapes = ((hidden, LATENT + 1), (hidden, hidden + 1), (width, hidden + 1))
        self._generator = [self._start(shape) for shape in shapes]
        self._steps = [
            torch.optim.Adam(net, lr=question.rate, betas=(0.5, 0.9))
            for net in (self._critic, self._generator)
        ]

    def _start(self, shape: tuple[int, ...]) -> Any:
        torch = _torch()
        drawn = torch.randn(shape, generator=self._source, dtype=torch.float64) / math.sqrt(shape[-1])
        return drawn.requires_grad_(True)

    def weights(self) -> tuple[FloatArray, ...]:
        """The critic's parameters."""
        return tuple(part.detach().numpy() for part in self._critic)

    def _layer(self, weights: Any, rows: Any) -> Any:
        return rows @ weights[:, :-1].T + weights[:, -1]

    def _leaky(self, values: Any) -> Any:
        return _torch().nn.functional.leaky_relu(values, self._slope)

    def _judged(self, rows: Any) -> Any:
        first, second, last = self._critic
        return self._leaky(self._layer(second, self._leaky(self._layer(first, rows)))) @ last

    def _made(self, n: int) -> Any:
        torch = _torch()
        rows = torch.randn((n, LATENT), generator=self._source, dtype=torch.float64)
        first, second, last = self._generator
        inside = self._leaky(self._layer(second, self._leaky(self._layer(first, rows))))
        return torch.tanh(self._layer(last, inside))

    def criticise(self, gradient: FloatArray) -> None:
        """One step of the critic by this gradient."""
        torch = _torch()
        parts = torch.split(torch.from_numpy(gradient), [part.numel() for part in self._critic])
        for part, mine in zip(self._critic, parts, strict=True):
            part.grad = mine.reshape(part.shape).clone()
        self._steps[0].step()
        with torch.no_grad():
            for part in self._critic:
                part.clamp_(-self._bound, self._bound)

    def improve(self) -> None:
        """One step of the generator towards what the critic takes for private rows."""
        self._steps[1].zero_grad()
        (-self._judged(self._made(FAKES)).mean()).backward()
        self._steps[1].step()

    def generate(self, n: int) -> FloatArray:
        """Points of the generator, in the cube of side 2."""
        return self._made(n).detach().numpy()


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("The generative baseline needs torch: pip install 'privada-lab[deep]'.") from None
    return torch


__all__ = ["GeneratedPoints"]
