"""Networks that an owner may be asked to train: declared layer by layer, or known to it by name.

A *declared* network is a list of layers, each one of `LAYERS` with plain numbers as its settings. It
travels as JSON beside its parameters; nothing of it is code, and its size is known before it is built: it
is first made without memory (torch's ``meta`` device) and its parameters and activations are counted.
Every other module is *known*: whoever holds the rows registers it by `keep` under a name, in its own
process, as its own code. A question then carries the name; an owner that does not know it refuses before
anything is charged. Needs the extra ``deep`` (torch).

`Gradients` are losses and gradients of single rows: the same arithmetic on both sides.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError

Layer = dict[str, Any]

_CONVOLUTION = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "bias")
LAYERS: dict[str, tuple[str, ...]] = {
    "AvgPool2d": ("kernel_size", "stride", "padding"),
    "Conv1d": _CONVOLUTION,
    "Conv2d": _CONVOLUTION,
    "ELU": ("alpha",),
    "Flatten": (),
    "GELU": (),
    "GroupNorm": ("num_groups", "num_channels"),
    "LayerNorm": ("normalized_shape",),
    "LeakyReLU": ("negative_slope",),
    "Linear": ("in_features", "out_features", "bias"),
    "MaxPool2d": ("kernel_size", "stride", "padding"),
    "ReLU": (),
    "SiLU": (),
    "Sigmoid": (),
    "Softplus": (),
    "Tanh": (),
    "Unflatten": ("dim", "unflattened_size"),
}
MOST_LAYERS = 100
MOST_PARAMETERS = 2_000_000
MOST_ACTIVATIONS = 5_000_000  # numbers, for one row

_KEPT: dict[str, Any] = {}


def torch_module() -> Any:
    """Torch, or an error that names the extra."""
    try:
        import torch
    except ImportError:
        raise InputError("Deep models need torch: pip install 'privada[deep]'.") from None
    return torch


def declare(module: Any) -> list[Layer]:
    """The layers of a `torch.nn.Sequential`, or an error that names the one that cannot be declared.

    >>> torch = torch_module()
    >>> declare(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Tanh()))[1]
    {'layer': 'Tanh'}
    """
    torch = torch_module()
    layers: list[Layer] = []
    for part in module.children() if type(module) is torch.nn.Sequential else [module]:
        name = type(part).__name__
        if type(part) is torch.nn.Sequential:
            layers += declare(part)
        elif name not in LAYERS or type(part) is not getattr(torch.nn, name):
            raise InputError(f"The layer {name} cannot be declared; allowed: {', '.join(LAYERS)}.")
        else:
            layer: Layer = {"layer": name}
            for key in LAYERS[name]:
                value = getattr(part, key)
                value = list(value) if isinstance(value, tuple) else value
                layer[key] = value is not None if key == "bias" else value
            # A setting that is not in the list would be lost: the layer that is built must be the same.
            with torch.device("meta"):
                if repr(_layer(layer)) != repr(part):
                    raise InputError(f"The layer {part!r} has a setting that cannot be declared.")
            layers.append(layer)
    return layers


def build(layers: Sequence[Layer], *, width: int) -> Any:
    """The declared network, in double precision; refused if it is too large for rows of that width."""
    torch = torch_module()
    if not isinstance(layers, (list, tuple)) or not 0 < len(layers) <= MOST_LAYERS:
        raise InputError(f"Expected a list of 1 to {MOST_LAYERS} layers.")
    try:
        with torch.device("meta"):
            plan = torch.nn.Sequential(*map(_layer, layers))
            # count parameters and activations without any memory
            if sum(parameter.numel() for parameter in plan.parameters()) > MOST_PARAMETERS:
                raise InputError(f"Expected at most {MOST_PARAMETERS:,} parameters.")
            rows, total = torch.zeros(1, width), 0
            for part in plan:
                rows = part(rows)
                total += rows.numel()
                if total > MOST_ACTIVATIONS:
                    raise InputError(f"Expected at most {MOST_ACTIVATIONS:,} activations for one row.")
    except InputError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError, OverflowError, AssertionError):
        raise InputError(f"Expected layers that take rows of {width} numbers and fit one another.") from None
    return plan.to_empty(device="cpu").double().eval()  # parameters come with the question


def _layer(entry: Layer) -> Any:
    name = _check.one_of(tuple(LAYERS), layer=entry.get("layer"))
    settings = {key: value for key, value in entry.items() if key != "layer"}
    if set(settings) != set(LAYERS[name]):
        raise InputError(f"Expected {name} with {', '.join(LAYERS[name]) or 'no settings'}.")
    for key, value in settings.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(isinstance(v, (bool, int, float)) and abs(v) <= MOST_PARAMETERS for v in numbers):
            raise InputError(f"Expected {key} of {name} to be a number, or a list of them.")
        settings[key] = tuple(value) if isinstance(value, list) else value
    return getattr(torch_module().nn, name)(**settings)


def keep(name: str, module: Any) -> None:
    """Let questions in this process name a module. It is its holder's own code, and runs as such.

    Its result for a row must depend on that row and the parameters alone, as it does in evaluation mode.
    """
    if not isinstance(module, torch_module().nn.Module):
        raise InputError(f"Expected a torch module, got {type(module).__name__}.")
    _KEPT[_check.text(longest=200, name=name)] = copy.deepcopy(module).double().eval()


def forget(name: str) -> None:
    """Undo `keep`."""
    _KEPT.pop(name, None)


def resolve(network: Any, *, width: int) -> Any:
    """The module that a question's ``network`` means: ``{"layers": [...]}`` or ``{"known": name}``."""
    if not isinstance(network, dict) or set(network) not in ({"layers"}, {"known"}):
        raise InputError("Expected network to have layers, or the name of a known module.")
    if "layers" in network:
        return build(network["layers"], width=width)
    torch_module()
    if network["known"] not in _KEPT:
        raise InputError(f"No module named {network['known']!r} is known here; declare its layers instead.")
    return _KEPT[network["known"]]


def n_outputs(module: Any, *, width: int) -> int:
    """Number of scores of one row."""
    torch = torch_module()
    try:
        with torch.no_grad():
            shape = tuple(module(torch.zeros(1, width, dtype=torch.float64)).shape)
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        raise InputError(f"Expected a module that takes rows of {width} numbers.") from None
    if len(shape) != 2 or shape[0] != 1:
        raise InputError(f"Expected a module that gives a row of scores for each row, got shape {shape}.")
    return int(shape[1])


def flat(module: Any) -> FloatArray:
    """All parameters in one vector, in the module's order."""
    parts = [part.detach().double().cpu().numpy().ravel() for part in module.parameters()]
    return np.concatenate(parts) if parts else np.zeros(0)


def shaped(module: Any, vector: FloatArray) -> dict[str, Any]:
    """The parameters that a vector means, by name."""
    torch = torch_module()
    own = dict(module.named_parameters())
    parts = torch.split(torch.from_numpy(np.array(vector)), [part.numel() for part in own.values()])
    return {name: part.reshape(own[name].shape) for name, part in zip(own, parts, strict=True)}


def with_parameters(module: Any, weights: FloatArray) -> Any:
    """A copy of the module with the parameters that a vector means."""
    module = copy.deepcopy(module)
    values = shaped(module, weights)
    with torch_module().no_grad():
        for name, part in module.named_parameters():
            part.copy_(values[name])
    return module


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
        torch = torch_module()
        self.module, self.loss = module, loss
        parameters = sum(part.numel() for part in module.parameters())
        self.block = max(1, min(BLOCK, _BLOCK_NUMBERS // max(1, parameters)))
        short = -len(X) % self.block
        self._X = torch.from_numpy(np.vstack([X, np.zeros((short, X.shape[1]))]))
        kind = np.float64 if loss == "squared" else np.int64
        self._y = torch.from_numpy(np.r_[y, np.zeros(short)].astype(kind))
        self.size = len(X)

    def _value(self, parameters: Any, x: Any, y: Any) -> Any:
        """Loss of one row."""
        torch = torch_module()
        scores = torch.func.functional_call(self.module, parameters, (x[None],))
        if self.loss == "squared":
            return ((scores[0, 0] - y) ** 2).clone()
        return torch.nn.functional.cross_entropy(scores, y[None])

    def blocks(self, w: FloatArray) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """For each block: its place, its rows' losses, its rows' gradients of shape (rows, parameters)."""
        torch = torch_module()
        one = torch.func.grad_and_value(self._value)
        parameters = shaped(self.module, w)
        own = {name: part.expand(self.block, *part.shape) for name, part in parameters.items()}
        for at in range(0, self.size, self.block):
            end = at + self.block
            slopes, values = torch.func.vmap(one)(own, self._X[at:end], self._y[at:end])
            gradients = torch.cat([part.flatten(1) for part in slopes.values()], dim=1).numpy()
            live = min(end, self.size) - at
            yield slice(at, at + live), values.numpy()[:live], gradients[:live]

    def weighted(self, w: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``Σ q_i ∇l_i`` and all losses, in one pass: for public rows."""
        torch = torch_module()
        own = {name: part.requires_grad_() for name, part in shaped(self.module, w).items()}
        scores = torch.func.functional_call(self.module, own, (self._X[: self.size],))
        y = self._y[: self.size]
        if self.loss == "squared":
            values = (scores[:, 0] - y) ** 2
        else:
            values = torch.nn.functional.cross_entropy(scores, y, reduction="none")
        slopes = torch.autograd.grad((values * torch.from_numpy(q)).sum(), list(own.values()))
        return np.concatenate([part.numpy().ravel() for part in slopes]), values.detach().numpy()


__all__ = [
    "BLOCK",
    "LAYERS",
    "Gradients",
    "build",
    "declare",
    "flat",
    "forget",
    "keep",
    "n_outputs",
    "resolve",
    "shaped",
    "torch_module",
    "with_parameters",
]
