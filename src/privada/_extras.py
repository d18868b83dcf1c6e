"""Optional libraries: errors name the extra that installs them, before anything is charged."""

from __future__ import annotations

from importlib.util import find_spec

from privada.exceptions import InputError


def require(extra: str, *modules: str, purpose: str) -> None:
    """Raise an `InputError` that names the extra, unless all of its modules can be imported.

    Call it when a question or a learner is made, not when a release has arrived and is paid for.

    >>> require("onnx", "surely_not_installed", purpose="An ONNX hypothesis")
    Traceback (most recent call last):
        ...
    privada.exceptions.InputError: An ONNX hypothesis needs surely_not_installed: pip install 'privada[onnx]'.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InputError(f"{purpose} needs {' and '.join(missing)}: pip install 'privada[{extra}]'.")


__all__ = ["require"]
