"""Loads the common code of Hekla's processes, before they are forked (see `prefork`).

The console is loaded first, because people wait for it. The code of the workers is loaded once it answers.
"""

from importlib import import_module

from django import setup

_OF_CONSOLE = (
    *("hekla.live.routing", "channels.auth", "channels.routing", "channels.security.websocket"),
    *("uvicorn.main", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl"),
    *("uvicorn.protocols.websockets.websockets_sansio_impl", "uvloop", "kombu.transport.redis"),
    *("django.core.management.commands.migrate", "django.db.backends.postgresql.base"),
)
_OF_WORKERS = (
    *("celery.bin.celery", "celery.bin.worker", "celery.apps.worker", "celery.beat"),
    *("celery.concurrency.thread", "celery.fixups.django", "celery.events.state"),
)


def load_console() -> None:
    """Load the code of web processes and commands, without opening connections."""
    setup()
    from django.urls import get_resolver  # noqa: PLC0415  (Django must be set up first)

    get_resolver().url_patterns  # noqa: B018  (the access loads them)
    for name in _OF_CONSOLE:
        import_module(name)


def load_workers() -> None:
    """Load the additional code of workers."""
    app = import_module("hekla.project.celery").app  # by name, as in the command lines of the processes
    app.loader.import_default_modules()
    app.finalize()
    for name in _OF_WORKERS:
        import_module(name)
