"""Rows in object stores: Parquet and CSV in S3, Google Cloud Storage and Azure, read by obstore.

Credentials come from the environment alone (AWS_ACCESS_KEY_ID and so on), never from ``owner.toml``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from privada.exceptions import InputError, SourceError, SourceOutageError
from privada.parties.schema import Schema
from privada.parties.sources.files import StoredRows, open_csv, open_parquet
from privada.parties.sources.source import WatchedSource

SCHEMES = ("s3", "gs", "az", "abfs", "abfss")
READ_AHEAD = 1 << 22
RETRY_SECONDS = 10.0  # for which a request is repeated before the store counts as away


class StoredFiles:
    """The objects that a URL names: one, or all below it.

    Parameters
    ----------
    url : str
        As in ``s3://bucket/rows.parquet`` or ``s3://bucket/folder``; without user, password or query.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name = parts.path.rstrip("/").rpartition("/")[2] or parts.netloc
        self._path = parts.path.strip("/")
        with _name_faults(self.name):
            self._store = _load_obstore().store.from_url(
                f"{parts.scheme}://{parts.netloc}",
                retry_config={"retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            )

    def __repr__(self) -> str:
        return f"<StoredFiles {self.name}>"

    def paths(self) -> list[str]:
        """The objects, in order of their names."""
        return [path for path, _ in self._list_objects()]

    def identity(self) -> str:
        """Names, sizes, tags and versions of all objects."""
        return "\n".join(line for _, line in self._list_objects())

    def _list_objects(self) -> list[tuple[str, str]]:
        """Path and identity of each object that holds rows."""
        with _name_faults(self.name):
            obstore = _load_obstore()
            objects = [entry for page in obstore.list(self._store, self._path or None) for entry in page]
            try:  # an object of the very name is not listed below it
                objects = objects or [obstore.head(self._store, self._path)]
            except FileNotFoundError:
                raise SourceOutageError(
                    f"There is nothing at {self.name} in the store.", part="object store"
                ) from None
        keys = ("path", "size", "e_tag", "version", "last_modified")
        return sorted(
            (entry["path"], " ".join(str(entry[key]) for key in keys))
            for entry in objects
            # Other programs leave marks beside rows, whose names begin so.
            if not any(part.startswith(("_", ".")) for part in entry["path"].split("/"))
        )

    def open(self, path: str) -> Any:
        """An object as a file of Arrow's."""
        import pyarrow as pa

        with _name_faults(self.name):
            reader = _load_obstore().open_reader(self._store, path, buffer_size=READ_AHEAD)
        return pa.PythonFile(io.BufferedReader(_Raw(reader, self.name), READ_AHEAD), mode="r")

    def filesystem(self) -> Any:
        """The store as a file system of Arrow's, for reading only."""
        from pyarrow import fs

        files = self

        class Handler(fs.FileSystemHandler):  # type: ignore[misc]
            """Arrow's view of the store; nothing is written."""

            def get_type_name(self) -> str:
                return "privada"

            def normalize_path(self, path: str) -> str:
                return path

            def get_file_info(self, paths: list[str]) -> list[Any]:
                return [fs.FileInfo(path, fs.FileType.File) for path in paths]

            def get_file_info_selector(self, _: Any) -> list[Any]:
                return [fs.FileInfo(path, fs.FileType.File) for path in files.paths()]

            def open_input_stream(self, path: str) -> Any:
                return files.open(path)

            def open_input_file(self, path: str) -> Any:
                return files.open(path)

            def _refuse(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
            delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse

        return fs.PyFileSystem(Handler())


class BucketSource(WatchedSource):
    """Rows in objects of a store."""

    schemes = SCHEMES

    def __init__(self, rows: StoredRows, schema: Schema) -> None:
        stored = StoredFiles(str(rows.place))
        paths = stored.paths()
        if rows.csv:
            source = open_csv({path: partial(stored.open, path) for path in paths}, rows.dialect, schema)
        else:
            source = open_parquet(paths, stored.name, schema, stored.filesystem())
        super().__init__(source, stored.identity, reopen=lambda: BucketSource(rows, schema))

    @classmethod
    def claims(cls, data: Any) -> bool:
        return isinstance(data, StoredRows) and data.scheme in SCHEMES


class _Raw(io.RawIOBase):
    """An obstore reader as a raw file of Python's."""

    def __init__(self, reader: Any, name: str) -> None:
        self._reader, self._name = reader, name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _name_faults(self._name):
            blob = memoryview(self._reader.read(len(buffer)))
        buffer[: len(blob)] = blob
        return len(blob)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())


@contextmanager
def _name_faults(name: str) -> Iterator[None]:
    """Whatever a store raises is an outage: it knows objects, not what is in them."""
    try:
        yield
    except (InputError, SourceError):
        raise
    except Exception as error:  # its message may show an address or a key
        raise SourceOutageError(
            f"{name} cannot be read from the store: {type(error).__name__}.", part="object store"
        ) from None


def _load_obstore() -> Any:
    try:
        import obstore
        import obstore.store
    except ImportError:
        raise InputError("Rows in an object store need an extra: pip install 'privada[bucket]'.") from None
    return obstore


__all__ = ["SCHEMES", "BucketSource", "StoredFiles"]
