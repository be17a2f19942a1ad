"""Logging configuration: one line per record on standard error, plain or JSON, also for structlog."""

import logging
from typing import Any

import structlog

_MOST_CHARACTERS = 300


class ShortMessage(logging.Filter):
    """Cuts messages that repeat what a client sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Cut the message of the record, which is always logged."""
        record.msg, record.args = record.getMessage()[:_MOST_CHARACTERS], ()
        return True


class NoTraceback(logging.Filter):
    """Drops the traceback of errors that a client causes: it would show only Django's own code."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop the traceback of the record, which is always logged."""
        record.exc_info = record.exc_text = None
        return True


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "%(levelname).1s %(name)s: %(message)s"},
        "json": {"()": "hekla.lib.json_lines.JsonLines"},
    },
    "filters": {"short": {"()": ShortMessage}, "no traceback": {"()": NoTraceback}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "axes": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "django.request": {"filters": ["short"]},
        "django.security.DisallowedHost": {"filters": ["short", "no traceback"]},
        "django_structlog": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
    },
}


def configure(form: str) -> None:
    """Make structlog write through the standard library, with the request id in each line. `form`: plain or json."""
    LOGGING["handlers"]["console"]["formatter"] = form
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            structlog.stdlib.render_to_log_kwargs,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
