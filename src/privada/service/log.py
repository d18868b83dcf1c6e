"""A service's log: one JSON object per line, on stderr. It never holds data.

What others wrote (names, reasons) is bounded and without control characters. An unexpected error is logged
by its type alone, because its message could hold data.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any

from privada._text import bounded, printable_line

_FIELDS = (
    "owner",
    "owners",
    "question",
    "outcome",
    "learner",
    "reason",
    "seconds",
    "port",
    "address",
    "count",
)


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told = {"time": when, "level": record.levelname.lower(), "event": _clean(record.getMessage())}
        given = {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        return json.dumps(told | {name: _clean(value) for name, value in given.items()})


def _clean(value: Any) -> Any:
    return printable_line(bounded(value)) if isinstance(value, str) else value


@contextmanager
def json_log(stream: IO[str]) -> Iterator[None]:
    """Write privada's log to a stream, and nowhere else, while a service runs."""
    log, handler = logging.getLogger("privada"), logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    before = log.handlers[:], log.level, log.propagate
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.handlers, log.propagate = before[0], before[2]
        log.setLevel(before[1])


__all__ = ["JsonLines", "json_log"]
