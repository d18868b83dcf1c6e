"""Where private rows come from, and how they are read again and again."""

from privada.parties.sources.opening import Source, open_source
from privada.parties.tables import Table

__all__ = ["Source", "Table", "open_source"]
