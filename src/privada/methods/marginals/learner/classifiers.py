"""Classifiers on the wire: translated, compared with themselves on public rows, or refused by name.

A classifier becomes our own form only if its decision is the largest of linear scores, or of a network's, and
only if that form labels public rows as the classifier does. Others, torch modules too, become ONNX hypotheses
like any other: their operators are checked against the list, and an owner runs them in a process of its own,
one record at a time, under limits (`privada.methods.hypotheses.onnx`).

A learner's model is tried on public rows with made-up labels first (`check_classifier`, `try_out`): once an
answer is paid for, a model that cannot be fitted would have cost the budget for nothing.
"""

from __future__ import annotations

import copy
import io
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from privada._arrays import AnyArray, FloatArray, IntArray
from privada.exceptions import AnswerError, InputError
from privada.methods.hypotheses.forms import Constant, Hypothesis, Network
from privada.methods.hypotheses.onnx import Onnx, of_model

ABSENT = -1e300  # score of a class that a classifier has not met
SAME = 0.95  # share of public rows on which our own form has to agree with the classifier
NEARLY = 0.9  # of ONNX, which compares in single precision and may break ties of votes otherwise
ONNX_ROWS = 64  # public rows on which ONNX is compared
TRIED = 100  # public rows that a trial fits
OPSET = 18  # of exported torch modules

Layers = list[tuple[FloatArray, FloatArray]]


def of_classifier(
    model: Any,
    *,
    mean: FloatArray,
    scale: FloatArray,
    n_classes: int | None = None,
    rows: FloatArray | None = None,
) -> Hypothesis:
    """The wire form of a classifier that was fitted on ``(X - mean) / scale`` with class codes as labels.

    One class alone, linear models and scikit-learn's networks become our own form; any other, torch modules
    too, becomes ONNX. Raises `InputError` for what has neither form.

    Parameters
    ----------
    n_classes : int, optional
        Of the schema; by default one more than the largest code that the classifier knows. A class that it
        has not met is never predicted.
    rows : array, optional
        Public rows on which the wire form is compared with the classifier; by default some are made up.
    """
    torch = sys.modules.get("torch")  # torch is not imported to find out
    if torch is not None and isinstance(model, torch.nn.Module):
        return _convert_module(model, mean, scale)
    if len(model.classes_) == 1:
        return Constant(code=int(model.classes_[0]))
    # Public rows, mixed, and some that are made up around them.
    rng = np.random.default_rng(0)
    trial = rng.normal(mean, 2 * np.abs(scale), size=(ONNX_ROWS, len(mean)))
    if rows is not None:
        trial = np.vstack([rows[rng.permutation(len(rows))[: 4 * ONNX_ROWS]], trial])
    standard = (trial - mean) / scale
    predicted = np.asarray(model.predict(standard))
    layers = _read_layers(model, standard)
    if layers is not None:
        codes = np.asarray(model.classes_, dtype=np.int64)
        if n_classes is not None and codes[-1] >= n_classes:
            raise InputError(f"Expected class codes below {n_classes}, got a classifier of {codes.tolist()}.")
        weights, bias = layers[0]
        first = weights / scale[:, None]
        layers[0] = (first, bias - mean @ first)
        layers[-1] = _add_classes(*layers[-1], codes, int(codes[-1]) + 1 if n_classes is None else n_classes)
        network = Network(layers=tuple(layers), activation=getattr(model, "activation", "relu"))
        if np.mean(network.codes(trial) == predicted) >= SAME:
            return network
    return _export(model, trial[:ONNX_ROWS], predicted[:ONNX_ROWS], mean=mean, scale=scale)


def _read_layers(model: Any, standard: FloatArray) -> Layers | None:
    """Layers of a model whose largest score, or its one score's sign, is its class; None for any other."""
    codes = np.asarray(model.classes_)
    if codes.dtype.kind not in "iufb" or codes[0] < 0 or not np.array_equal(codes, np.round(codes)):
        return None
    if hasattr(model, "coefs_") and getattr(model, "activation", "") in {"relu", "tanh"}:
        return list(zip(model.coefs_, model.intercepts_, strict=True))
    if not (hasattr(model, "coef_") and hasattr(model, "decision_function")):
        return None
    coef = np.atleast_2d(np.asarray(model.coef_))
    columns = 1 if len(codes) == 2 else len(codes)
    if coef.shape != (columns, standard.shape[1]) or np.size(model.intercept_) not in {1, columns}:
        return None
    bias = np.broadcast_to(np.atleast_1d(model.intercept_), (columns,))
    scores = np.reshape(model.decision_function(standard), (len(standard), -1))
    linear = standard @ coef.T + bias
    # The scores of some models are no linear ones, such as votes of pairs of classes.
    if linear.shape != scores.shape or np.abs(linear - scores).max() > 1e-3 * np.abs(scores).max():
        return None
    return [(coef.T, bias)]


def _add_classes(
    weights: FloatArray, bias: FloatArray, codes: IntArray, n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """Give a last layer a column for each class: classes that the model has not met score lowest."""
    if len(codes) == n_classes:
        return weights, bias
    if weights.shape[1] == 1:
        weights, bias = np.hstack([np.zeros_like(weights), weights]), np.concatenate([[0.0], bias])
    wide, low = np.zeros((len(weights), n_classes)), np.full(n_classes, ABSENT)
    wide[:, codes], low[codes] = weights, bias
    return wide, low


def _export(
    model: Any, rows: FloatArray, predicted: AnyArray, *, mean: FloatArray, scale: FloatArray
) -> Hypothesis:
    """Export a classifier as ONNX, if that agrees with the classifier."""
    name = type(model).__name__
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hypothesis = of_model(model, mean=mean, scale=scale)
        agreement = float(np.mean(hypothesis.codes(rows) == predicted))
    except (InputError, AnswerError) as error:
        raise InputError(f"{name} cannot travel to an owner: {error}") from None
    except Exception as error:  # its converters share no class of errors
        reason = _first_line(error)
        raise InputError(f"{name} cannot travel to an owner, it does not export to ONNX: {reason}") from None
    if agreement < NEARLY:
        raise InputError(
            f"{name} cannot travel to an owner: "
            f"as ONNX it agrees with itself on {agreement:.0%} of public rows."
        )
    return hypothesis


def _convert_module(module: Any, mean: FloatArray, scale: FloatArray) -> Onnx:
    """Convert a torch classifier on ``(X - mean) / scale``, from rows to scores or class codes, to ONNX.

    It is traced on one row of zeros by the exporter that needs nothing beyond torch, in evaluation mode and
    single precision.
    """
    import onnxruntime as ort
    import torch

    labelling = _add_scaling(torch, copy.deepcopy(module).float().eval(), mean, scale)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the older one, and what tracing warns of
        try:
            torch.onnx.export(
                labelling,
                (torch.zeros(1, len(mean)),),
                stream,
                dynamo=False,
                opset_version=OPSET,
                input_names=["rows"],
                output_names=["label"],
            )
        except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
            raise InputError(f"The module does not export to ONNX: {_first_line(error)}") from None
    blob = stream.getvalue()
    hypothesis = Onnx(model=np.frombuffer(blob, dtype=np.uint8))
    hypothesis.try_out(len(mean))
    # Tracing keeps only one branch of a condition on values, so compare with the module on public rows.
    rows = np.random.default_rng(0).normal(mean, 2 * np.abs(scale), size=(ONNX_ROWS, len(mean)))
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
    with torch.no_grad():
        for row in rows:
            exported = session.run(None, {"rows": row[None].astype(np.float32)})[0][0]
            if int(exported) != int(labelling(torch.from_numpy(row[None]).float())[0]):
                raise InputError(
                    "The module does not export: what its layers do depends on the values in a row."
                )
    return hypothesis


def _add_scaling(torch: Any, module: Any, mean: FloatArray, scale: FloatArray) -> Any:
    """Scale rows before a module and, if it gives scores, choose the largest after it."""
    shift, spread = (torch.tensor(np.asarray(part), dtype=torch.float32) for part in (mean, scale))
    try:
        with torch.no_grad():
            output = module(torch.zeros(1, len(mean)))
    except (RuntimeError, TypeError, ValueError, IndexError):
        raise InputError(f"Expected a module that takes rows of {len(mean)} numbers.") from None
    if not isinstance(output, torch.Tensor):
        raise InputError(f"Expected a module that gives scores or class codes, got {type(output).__name__}.")
    scores = output.is_floating_point() and output.dim() == 2 and len(output) == 1 and output.shape[1] > 1
    codes = output.dtype in (torch.int64, torch.int32) and output.numel() == 1
    if not scores and not codes:
        raise InputError(
            f"Expected a module that gives scores of two or more classes or a class code for each row, "
            f"got {output.dtype} of shape {tuple(output.shape)}."
        )

    class Labelling(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, X: Any) -> Any:
            values = self.module((X - shift) / spread)
            return values.argmax(dim=1) if scores else values.reshape(-1).to(torch.int64)

    return Labelling().eval()


def check_classifier(
    classifier: Any, source: FloatArray, *, mean: FloatArray, scale: FloatArray, n_classes: int, travels: bool
) -> None:
    """Refuse a classifier that cannot be trained on weighted public rows, or not travel if it must."""
    check_kind(classifier, "classifier", such_as="LogisticRegression()")
    if len(source) < 2:
        return  # one row has one label, and that is a constant hypothesis
    standard = (spread_evenly(source, max(TRIED, 20 * n_classes)) - mean) / scale
    model = try_out(classifier, "classifier", standard, lambda rank, count: rank * n_classes // count)
    if travels:
        try:
            hypothesis = of_classifier(model, mean=mean, scale=scale, n_classes=n_classes, rows=source)
            hypothesis.fits(source.shape[1], n_classes)
        except InputError as error:
            raise InputError(f"Expected a classifier that rounds can submit. {error}") from None


def check_kind(model: Any, kind: str, *, such_as: str) -> None:
    """Refuse a model that is not a "classifier" or "regressor" as scikit-learn's, or takes no weights."""
    from sklearn.base import is_classifier, is_regressor
    from sklearn.utils.validation import has_fit_parameter

    fits = hasattr(model, "fit") and hasattr(model, "get_params")
    is_kind = {"classifier": is_classifier, "regressor": is_regressor}[kind]
    if isinstance(model, type) or not fits or not is_kind(model):
        text = repr(model)
        short = text if len(text) <= 80 else f"{text[:80]}..."
        raise InputError(f"Expected {kind} to be a scikit-learn {kind}, got {short}.")
    if not has_fit_parameter(model, "sample_weight"):
        raise InputError(
            f"Expected {kind} to take sample_weight in fit, which {type(model).__name__} does not: "
            "public rows are weighted. They come standardised, so give a pipeline's last step alone, "
            f"or a {kind} that takes weights, such as {such_as}."
        )


def spread_evenly(source: FloatArray, most: int = TRIED) -> FloatArray:
    """At most so many rows, from the first to the last."""
    return source[np.linspace(0, len(source) - 1, min(len(source), most)).astype(np.int64)]


def try_out(model: Any, kind: str, standard: FloatArray, labels: Callable[[IntArray, int], AnyArray]) -> Any:
    """Fit a clone of the model to standardised public rows; an `InputError` has the model's own message.

    Parameters
    ----------
    labels : function of ranks and their number
        Makes labels up for rows, by their order along a line.
    """
    from sklearn.base import clone

    rows, count = standard.astype(np.float32), len(standard)
    along = rows @ np.random.default_rng(0).normal(size=rows.shape[1])
    made_up = labels(np.argsort(np.argsort(along, kind="stable")), count)
    trial = clone(model)
    if trial.get_params(deep=False).get("random_state", 0) is None:
        trial.set_params(random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial.fit(rows, made_up, sample_weight=np.ones(count, dtype=np.float32))
            trial.predict(rows)
    except Exception as error:  # whatever a foreign model raises, nothing was charged yet
        raise InputError(
            f"Expected a {kind} that fits standardised public rows with made-up labels; "
            f"{type(model).__name__} says: {_first_line(error)}"
        ) from None
    return trial


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]


__all__ = ["TRIED", "check_classifier", "check_kind", "of_classifier", "spread_evenly", "try_out"]
