"""Where private rows come from, and how they are opened.

Every kind of place is a `Source` class that an entry point in the group ``privada.sources`` names, be it of
privada or of another package.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

from privada.exceptions import InputError, PrivadaWarning, SchemaError
from privada.parties.schema import Schema
from privada.parties.sources.databases import Database
from privada.parties.sources.files import StoredRows
from privada.parties.sources.memory import ArraySource, Collection, FrameSource, LazyFrameSource
from privada.parties.sources.source import Source, VintageSource, with_dates
from privada.parties.tables import Table, as_arrow
from privada.privacy.accounting.filters import Vintage

SOURCES = "privada.sources"


@cache
def find_sources() -> tuple[type[Source], ...]:
    """All installed kinds of sources, privada's own first; one that cannot be loaded is left out."""
    sources = []
    for entry in metadata.entry_points(group=SOURCES):
        try:
            sources.append(entry.load())
        except (ImportError, AttributeError) as error:
            warnings.warn(f"The source {entry.name} cannot be loaded: {error}.", PrivadaWarning, stacklevel=2)
    # Another package must not take over what privada reads itself.
    return tuple(sorted(sources, key=lambda source: not source.__module__.startswith("privada.")))


def open_source(data: Any, schema: Schema, y: Any, person: Any, vintage: Vintage | None = None) -> Source:
    """Rows from an array, a frame, Arrow data, a path, a URL, a database or a source of one's own.

    ``y`` and ``person`` accompany an array. Of a vintage, only its rows are read.
    """
    has_more = y is not None or person is not None
    if vintage is not None:
        # Rows need names of columns to have a date, and a Dask collection is divided already.
        if has_more or ArraySource.claims(data) or Collection.claims(data):
            raise SchemaError("Expected a frame, Arrow data, files or a database beside a vintage.")
        return VintageSource(open_source(data, with_dates(schema, vintage), None, None), vintage, schema)
    if isinstance(data, Source):
        if has_more:
            raise SchemaError("A source has labels and persons among its columns; pass none beside it.")
        return data
    if isinstance(data, (str, os.PathLike)):
        data = StoredRows(data)
    if isinstance(data, StoredRows):
        check_place(data.place)
    source_type = next((source for source in find_sources() if source.claims(data)), None)
    # With labels beside them, rows of a frame are taken as an array, too.
    if source_type is ArraySource or (y is not None and source_type in (FrameSource, LazyFrameSource, None)):
        return ArraySource(data, schema, y, person)
    if source_type is None:
        as_arrow(data)  # which says what is expected
        raise SchemaError(f"Nothing that is installed reads rows of {type(data).__name__}.")
    return source_type.open(data, schema)


def check_place(place: str | os.PathLike[str]) -> None:
    """Refuse a URL of rows that nothing opens, and one that holds a user, a password or a signed query."""
    if "://" not in os.fspath(place):
        return
    parts = urlsplit(os.fspath(place))
    schemes = [scheme for source in find_sources() for scheme in source.schemes]
    if parts.scheme not in schemes:
        raise InputError(f"Expected a URL that begins with {', '.join(schemes)}, got {parts.scheme!r}.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            "The URL holds a user, a password or a query; credentials belong in the environment."
        )


__all__ = ["Database", "Source", "StoredRows", "Table", "check_place", "find_sources", "open_source"]
