"""A bucket of an object store (S3, Google, Azure), for institutions that share only cloud storage.

It passes every proxy. The store refuses to overwrite an item (a conditional put), so that one of several
writers wins. Give each party a role of its own that may write to its part of the bucket only, and keep
versions and an object lock if your store has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Self
from urllib.parse import urlsplit

from privada._extras import require
from privada.exceptions import CourierError, InputError, WireError
from privada.exchange.courier import PollingCourier, check_key, check_prefix, check_size

_RETRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}


class BucketCourier(PollingCourier):
    """Items as objects of a store of `obstore`, whose prefix, if it has one, is part of no key."""

    shortest_pause = 0.1
    longest_pause = 5.0

    def __init__(self, store: Any) -> None:
        super().__init__()
        self._store = store

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Open a bucket such as ``s3://exchange/trial``; credentials come from the environment."""
        store, parts = _load_obstore().store, urlsplit(url)
        if parts.query or parts.fragment:
            raise InputError(
                "A bucket's URL has no query: credentials and settings come from the environment."
            )
        try:
            opened = store.from_url(url, retry_config=_RETRIES)
        except Exception as error:
            raise InputError(f"This URL opens no bucket: {_describe(error)}") from None
        if isinstance(opened, store.HTTPStore):
            raise InputError(
                "A web server cannot refuse to overwrite a file; expected a URL such as s3://bucket/path, "
                "gs://bucket/path or az://container/path."
            )
        return cls(opened)

    def put(self, key: str, blob: bytes) -> bool:
        check_size(check_key(key), len(blob), self.largest)
        obstore = _load_obstore()
        with _naming_faults(f"write {key}"):
            try:
                obstore.put(self._store, key, blob, mode="create", use_multipart=False)
            except obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def get(self, key: str, *, largest: int | None = None) -> bytes | None:
        with _naming_faults(f"read {check_key(key)}"):
            try:
                item = _load_obstore().get(self._store, key)
            except FileNotFoundError:
                return None
            check_size(key, item.meta["size"], self.largest if largest is None else largest)
            return bytes(item.bytes())

    def check_writable(self, prefix: str) -> None:
        """Put an object and remove it.

        Where this party may not remove objects, one stays. The store then refuses to overwrite it, but only
        after it has checked that this party may write there.
        """
        key = f"{check_prefix(prefix)}probe"
        for _ in range(2):  # the second time if there was one already
            is_new = self.put(key, b"\n")
            with suppress(CourierError), _naming_faults(f"remove {key}"):
                _load_obstore().delete(self._store, key)
            if is_new:
                return

    def keys(self, prefix: str) -> list[str]:
        return sorted(self.stamps(prefix))

    def stamps(self, prefix: str) -> dict[str, object]:
        check_prefix(prefix)
        stamps: dict[str, object] = {}
        with _naming_faults(f"list {prefix or 'the bucket'}"):
            for page in _load_obstore().list(self._store, prefix.rstrip("/") or None):
                for item in page:
                    # Others put what they like into a bucket; a name that is no key is passed over.
                    with suppress(WireError):
                        stamps[check_key(item["path"])] = (item["size"], item["last_modified"], item["e_tag"])
        return stamps


@contextmanager
def _naming_faults(action: str) -> Iterator[None]:
    """Turn an error of the store into one sentence that says what could not be done."""
    try:
        yield
    except (_load_obstore().exceptions.BaseError, OSError) as error:
        raise CourierError(f"Cannot {action}: {_describe(error)}") from None


def _describe(error: Exception) -> str:
    """The kind of an error and its first line; never the request, which could show a credential."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"


def _load_obstore() -> Any:
    require("bucket", "obstore", purpose="A bucket")
    import obstore
    import obstore.exceptions
    import obstore.store

    return obstore


__all__ = ["BucketCourier"]
