"""Loads the common code of Hekla's processes, before they are forked (see `prefork`).

What the sign-in page needs is loaded first, because people wait for it. The rest is loaded once that page answers.
"""

from collections.abc import Iterator
from importlib import import_module

from django import setup
from django.conf import settings
from django.template.loader import get_template
from django.urls import reverse
from django.utils.module_loading import import_string

_OF_CONSOLE = (
    *("hekla.pages.frame.errors", "hekla.pages.health.checks", "hekla.pages.admission.long_polls"),
    *("hekla.live.proxy.hosts", "hekla.live.websockets", "channels.routing"),
    *("uvicorn.main", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl"),
    *("uvicorn.protocols.websockets.websockets_sansio_impl", "uvloop", "kombu.transport.redis"),
    *("django.core.management.commands.migrate", "django.db.backends.postgresql.base"),
)
_FIRST_TEMPLATES = ("signin/sign_in.html", "signin/use_link.html")
_OF_WORKERS = (
    *("hekla.controller.watcher", "hekla.pages.metrics.tasks"),
    *("celery.bin.celery", "celery.bin.worker", "celery.apps.worker", "celery.beat"),
    *("celery.concurrency.thread", "celery.fixups.django", "celery.events.state"),
)


def load_console() -> None:
    """Load the code that a web process needs for its first page, without opening connections."""
    setup()
    for path in [*settings.MIDDLEWARE, settings.SESSION_ENGINE + ".SessionStore"]:
        import_string(path)
    for name in _OF_CONSOLE:
        import_module(name)
    for name in _FIRST_TEMPLATES:
        get_template(name)
    reverse(settings.LOGIN_URL)  # fills the tables of all addresses


def load_pages() -> Iterator[None]:
    """Load the code of all pages, and pause between modules."""
    from hekla.pages import registry  # noqa: PLC0415  (needs the models)

    return registry.load_all()


def load_workers() -> None:
    """Load the additional code of workers."""
    app = import_module("hekla.project.celery").app  # by name, as in the command lines of the processes
    app.loader.import_default_modules()
    app.finalize()
    for name in _OF_WORKERS:
        import_module(name)
