"""Torch classifiers as ONNX hypotheses (extra ``deep``).

A module is traced on one row of zeros by the exporter that needs nothing beyond torch, in evaluation mode
and single precision; its scores end in an ``ArgMax``. The result is checked against the module on public
rows, because tracing keeps one branch only of a condition on values. From there on it is an ONNX
hypothesis like any other: its operators are checked against the list, and an owner runs it in a process of
its own, one record at a time, under limits (`privada.methods.hypotheses.onnx`).
"""

from __future__ import annotations

import copy
import io
import sys
import warnings
from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.hypotheses.onnx import Onnx

OPSET = 18
TRIALS = 64


def is_module(model: Any) -> bool:
    """Whether a model is torch's; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def of_module(module: Any, *, mean: FloatArray, scale: FloatArray) -> Onnx:
    """A torch classifier on ``(X - mean) / scale`` as an ONNX hypothesis.

    Parameters
    ----------
    module : torch.nn.Module
        From rows to scores of two or more classes, the largest of which is the class, or to class codes.
    mean, scale : arrays of shape (features,)
    """
    import torch

    whole = _labelling(torch, copy.deepcopy(module).float().eval(), mean, scale)
    blob = _exported(torch, whole, len(mean))
    made = Onnx(model=np.frombuffer(blob, dtype=np.uint8))
    made.try_out(len(mean))
    rows = np.random.default_rng(0).normal(mean, 2 * np.abs(scale), size=(TRIALS, len(mean)))
    with torch.no_grad():
        said = [int(whole(torch.from_numpy(row[None]).float())[0]) for row in rows]
    if _run_here(blob, rows) != said:
        raise InputError("The module does not export: what its layers do depends on the values in a row.")
    return made


def _labelling(torch: Any, module: Any, mean: FloatArray, scale: FloatArray) -> Any:
    """The module with its scaling before and, if it gives scores, the choice of the largest behind."""
    shift, spread = (torch.tensor(np.asarray(part), dtype=torch.float32) for part in (mean, scale))
    try:
        with torch.no_grad():
            found = module(torch.zeros(1, len(mean)))
    except (RuntimeError, TypeError, ValueError, IndexError):
        raise InputError(f"Expected a module that takes rows of {len(mean)} numbers.") from None
    if not isinstance(found, torch.Tensor):
        raise InputError(f"Expected a module that gives scores or class codes, got {type(found).__name__}.")
    scores = found.is_floating_point() and found.dim() == 2 and found.shape[0] == 1 and found.shape[1] > 1
    codes = found.dtype in (torch.int64, torch.int32) and found.numel() == 1
    if not scores and not codes:
        raise InputError(
            f"Expected a module that gives scores of two or more classes or a class code for each row, "
            f"got {found.dtype} of shape {tuple(found.shape)}."
        )

    class Labelling(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, X: Any) -> Any:
            given = self.module((X - shift) / spread)
            return given.argmax(dim=1) if scores else given.reshape(-1).to(torch.int64)

    return Labelling().eval()


def _exported(torch: Any, module: Any, width: int) -> bytes:
    """ONNX bytes, by the exporter that needs no further library."""
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the older one, and what tracing warns of
        try:
            torch.onnx.export(
                module,
                (torch.zeros(1, width),),
                stream,
                dynamo=False,
                opset_version=OPSET,
                input_names=["rows"],
                output_names=["label"],
            )
        except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
            first = str(error).strip().split("\n")[0][:200]
            raise InputError(f"The module does not export to ONNX: {first}") from None
    return stream.getvalue()


def _run_here(blob: bytes, rows: FloatArray) -> list[int]:
    """Codes of public rows by a model of our own making, in this process."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
    return [int(session.run(None, {"rows": row[None].astype(np.float32)})[0][0]) for row in rows]


__all__ = ["is_module", "of_module"]
