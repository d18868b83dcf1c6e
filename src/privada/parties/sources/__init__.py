"""Where private rows come from, and how they are read again and again."""

from privada.parties.sources.databases import Database
from privada.parties.sources.opening import StoredRows, open_source
from privada.parties.sources.source import Source
from privada.parties.tables import Table

__all__ = ["Database", "Source", "StoredRows", "Table", "open_source"]
