"""A service's log: one JSON object per line, on stderr. It never contains data.

Text from others (names, reasons) is bounded and without control characters. An unexpected error is logged
by its type alone, because its message could contain data.
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
    "owner", "owners", "question", "outcome", "learner", "reason", "seconds", "port", "part", "address",
    "count",
)  # fmt: skip


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": when, "level": record.levelname.lower(), "event": _clean(record.getMessage())}
        line |= {name: _clean(getattr(record, name)) for name in _FIELDS if hasattr(record, name)}
        return json.dumps(line)


def _clean(value: Any) -> Any:
    return printable_line(bounded(value)) if isinstance(value, str) else value


@contextmanager
def json_log(stream: IO[str]) -> Iterator[None]:
    """Write privada's log to a stream, and nowhere else, while a service runs.

    Other libraries write nothing: their lines are no JSON, and could contain data. What they would say about
    an outage is in privada's own line.
    """
    # Loggers of libraries that are imported later have no handlers: theirs is the root logger's.
    log, handler = logging.getLogger("privada"), logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    loggers = [logger for logger in log.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    others = [logging.getLogger(), *(logger for logger in loggers if logger is not log and logger.handlers)]
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in (log, *others)]
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    for other in others:
        other.handlers = [logging.NullHandler()]
    try:
        yield
    finally:
        for logger, handlers, level, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)


__all__ = ["JsonLines", "json_log"]
