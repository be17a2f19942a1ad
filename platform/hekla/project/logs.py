"""Logging configuration: one line per record on standard error, also for structlog."""

from typing import Any

import structlog

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname).1s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "axes": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "django_structlog": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
    },
}


def configure() -> None:
    """Make structlog write through the standard library, with the request id in each line."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.filter_by_level,
            structlog.processors.format_exc_info,
            structlog.stdlib.render_to_log_kwargs,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
