"""What the processes of Hekla need, loaded once for the one that then copies itself (see `prefork`).

The console comes first: people wait for it. What only the workers need is loaded while it starts.
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
    *("celery.bin.celery", "celery.bin.worker", "celery.bin.beat", "celery.apps.worker", "celery.apps.beat"),
    *("celery.concurrency.thread", "celery.fixups.django", "celery.events.state"),
)


def load_console() -> None:
    """Load what web processes and commands need. Nothing is connected to."""
    setup()
    from django.urls import get_resolver  # noqa: PLC0415  (Django must be set up first)

    get_resolver().url_patterns  # noqa: B018  (they are loaded by being asked for)
    for name in _OF_CONSOLE:
        import_module(name)


def load_workers() -> None:
    """Load what workers and beat need besides."""
    app = import_module("hekla.project.celery").app  # by name, as each process names what it runs
    app.loader.import_default_modules()
    app.finalize()
    for name in _OF_WORKERS:
        import_module(name)
