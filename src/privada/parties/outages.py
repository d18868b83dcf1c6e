"""Tell rows that are out of reach from rows that are wrong, by the cause of an error and not by its text."""

from __future__ import annotations

from privada.exceptions import SourceOutageError


def raise_if_out_of_reach(error: BaseException, name: str) -> None:
    """Raise `SourceOutageError` if the operating system could not open or read a file.

    Such errors have a number, as ``EIO``, ``ESTALE`` or ``EACCES``. What a reader raises because of the
    content of a file has none, even where it is an ``OSError``.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise SourceOutageError(f"{name} is out of reach: {error.strerror}.", part="files") from None


__all__ = ["raise_if_out_of_reach"]
