"""Log records as one JSON object per line, with the ids that are known: request, job, cluster, trace."""

import json
import logging
from datetime import UTC, datetime

import structlog

from hekla.lib import tracing

_USUAL = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "taskName"}
_MOST_LETTERS = 10_000


class JsonLines(logging.Formatter):
    """`time` (UTC), `level`, `logger`, `message`, the ids, what else the record has, and `exception` as text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of the record."""
        extra = {name: value for name, value in vars(record).items() if name not in _USUAL}
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_MOST_LETTERS],
            **structlog.contextvars.get_contextvars(),
            **extra,
        }
        if context := tracing.current():
            _version, line["trace_id"], line["span_id"], _flags = context.split("-")
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-_MOST_LETTERS:]
        return json.dumps(line, ensure_ascii=False, default=str)
