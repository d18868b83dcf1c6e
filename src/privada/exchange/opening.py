"""Open an exchange by its URL.

==============================  ====================================================================
URL                             courier
==============================  ====================================================================
``memory://trial``              memory of this process
``shared/exchange``             a folder; also ``file:///mnt/exchange``
``s3://bucket/path``            a bucket; also ``gs://``, ``az://`` and the ``https://`` address of one
``clinic/link.toml``            a NATS server: the file that its administrator gave you
``tls://broker:4222/trial``     the same, with ``?ca=FILE&certificate=FILE&key=FILE``
``nats://localhost:4222``       one on this machine, without encryption, for trials
==============================  ====================================================================

Credentials are never part of a URL, which is logged and shown: a bucket's come from the environment
(``AWS_ACCESS_KEY_ID`` and so on), a broker's from the files that are named.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import SplitResult, unquote, urlsplit

from privada._text import quoted
from privada.exceptions import InputError
from privada.exchange.courier import Courier, is_segment


def open_courier(url: str | os.PathLike[str]) -> Courier:
    """Open the courier that a URL, or the path of a folder, names.

    Parameters
    ----------
    url : str or path
        See the table above.

    Raises
    ------
    InputError
        The URL names no courier, carries a password, or its extra is not installed.
    CourierError
        The place cannot be reached.

    Examples
    --------
    >>> with open_courier("memory://example") as courier:
    ...     courier.put("questions/clinic/0b5e", b"...")
    True
    """
    text = os.fspath(url)
    if "://" not in text:
        return _open_link(text) if text.endswith(".toml") else _open_folder(text)
    parts = urlsplit(text)
    if parts.scheme not in _SCHEMES:
        raise InputError(f"Expected a path, or one of {_known()}, got {quoted(parts.scheme)}://.")
    if "@" in parts.netloc:
        raise InputError("A URL with a user or password in it would be logged; give none.")
    return _SCHEMES[parts.scheme](parts)


def _open_memory(parts: SplitResult) -> Courier:
    from privada.exchange.couriers.local import LocalCourier

    if not is_segment(parts.netloc) or parts.path or parts.query:
        raise InputError(f"Expected memory://NAME, got {quoted(parts.geturl())}.")
    return LocalCourier(parts.netloc)


def _open_file(parts: SplitResult) -> Courier:
    if parts.netloc not in ("", "localhost") or not parts.path or parts.query:
        raise InputError(f"Expected file:///PATH, got {quoted(parts.geturl())}.")
    return _open_folder(unquote(parts.path))


def _open_folder(path: str) -> Courier:
    from privada.exchange.couriers.folder import FolderCourier

    if not path or "\0" in path:
        raise InputError("Expected the path of a folder, got an empty or impossible one.")
    return FolderCourier(path)


def _open_bucket(parts: SplitResult) -> Courier:
    from privada.exchange.couriers.bucket import BucketCourier

    if parts.query or parts.fragment:
        raise InputError("A bucket's URL has no query: credentials and settings come from the environment.")
    return BucketCourier.from_url(parts.geturl())


def _open_link(path: str) -> Courier:
    from privada.exchange.link import Link

    return Link.read(path).open()


def _open_nats(parts: SplitResult) -> Courier:
    from privada.exchange.link import Link

    return Link.from_url(parts).open()


_SCHEMES: dict[str, Callable[[SplitResult], Courier]] = {
    "memory": _open_memory,
    "file": _open_file,
    "s3": _open_bucket,
    "gs": _open_bucket,
    "az": _open_bucket,
    "https": _open_bucket,
    "nats": _open_nats,
    "tls": _open_nats,
}


def _known() -> str:
    return ", ".join(f"{scheme}://" for scheme in _SCHEMES)


__all__ = ["open_courier"]
