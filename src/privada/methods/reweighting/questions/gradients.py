"""Losses and gradients of a torch module, row by row: the same arithmetic on both sides (extra ``deep``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada.methods.reweighting.questions import network

BLOCK = 128
_BLOCK_NUMBERS = 2**23


class Gradients:
    """Losses and gradients of single rows, in blocks of one shape.

    Parameters
    ----------
    module : torch module in double precision
    loss : "cross-entropy" or "squared"
    X, y : arrays
        Rows as the module sees them.
    """

    def __init__(self, module: Any, loss: str, X: FloatArray, y: FloatArray) -> None:
        torch = network.torch_module()
        self.module, self.loss = module, loss
        parameters = sum(each.numel() for each in module.parameters())
        self.block = max(1, min(BLOCK, _BLOCK_NUMBERS // max(1, parameters)))
        short = -len(X) % self.block
        self._X = torch.from_numpy(np.vstack([X, np.zeros((short, X.shape[1]))]))
        kind = np.float64 if loss == "squared" else np.int64
        self._y = torch.from_numpy(np.r_[y, np.zeros(short)].astype(kind))
        self.size = len(X)

    def _value(self, parameters: Any, x: Any, y: Any) -> Any:
        """Loss of one row."""
        torch = network.torch_module()
        scores = torch.func.functional_call(self.module, parameters, (x[None],))
        if self.loss == "squared":
            return ((scores[0, 0] - y) ** 2).clone()
        return torch.nn.functional.cross_entropy(scores, y[None])

    def blocks(self, w: FloatArray) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """For each block: its place, its rows' losses, its rows' gradients of shape (rows, parameters)."""
        torch = network.torch_module()
        one = torch.func.grad_and_value(self._value)
        named = network.shaped(self.module, w)
        own = {name: part.expand(self.block, *part.shape) for name, part in named.items()}
        for at in range(0, self.size, self.block):
            end = at + self.block
            slopes, values = torch.func.vmap(one)(own, self._X[at:end], self._y[at:end])
            each = torch.cat([part.flatten(1) for part in slopes.values()], dim=1).numpy()
            live = min(end, self.size) - at
            yield slice(at, at + live), values.numpy()[:live], each[:live]

    def weighted(self, w: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``Σ q_i ∇l_i`` and all losses, in one pass: for public rows."""
        torch = network.torch_module()
        named = {name: part.requires_grad_() for name, part in network.shaped(self.module, w).items()}
        scores = torch.func.functional_call(self.module, named, (self._X[: self.size],))
        y = self._y[: self.size]
        if self.loss == "squared":
            values = (scores[:, 0] - y) ** 2
        else:
            values = torch.nn.functional.cross_entropy(scores, y, reduction="none")
        slopes = torch.autograd.grad((values * torch.from_numpy(q)).sum(), list(named.values()))
        return np.concatenate([part.numpy().ravel() for part in slopes]), values.detach().numpy()


__all__ = ["BLOCK", "Gradients"]
