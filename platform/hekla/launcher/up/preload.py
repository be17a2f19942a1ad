"""Everything that a process of Hekla needs, loaded at once, for the one that then copies itself (see `prefork`)."""

from importlib import import_module

from django import setup

_ALSO = (
    *("hekla.live.routing", "channels.auth", "channels.routing", "channels.security.websocket"),
    *("uvicorn.main", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl"),
    *("uvicorn.protocols.websockets.websockets_sansio_impl", "uvloop"),
    *("celery.bin.celery", "celery.bin.worker", "celery.bin.beat", "celery.apps.worker", "celery.apps.beat"),
    *("celery.concurrency.thread", "celery.fixups.django", "kombu.transport.redis", "celery.events.state"),
    *("django.core.management.commands.migrate", "django.db.backends.postgresql.base"),
)


def load() -> None:
    """Load it. Nothing is connected to."""
    setup()
    from django.urls import get_resolver  # noqa: PLC0415  (Django must be set up first)

    get_resolver().url_patterns  # noqa: B018  (they are loaded by being asked for)
    app = import_module("hekla.project.celery").app  # by name, as each process names what it runs
    app.loader.import_default_modules()
    app.finalize()
    for name in _ALSO:
        import_module(name)
