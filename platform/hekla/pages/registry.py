"""The features of the console. Each is a package in this folder, with modules of these names, all optional:

- `urls`: `urlpatterns`, below `prefix` (for example `"queues/"`), in the namespace `app_name` if it has one. Features
  with the same prefix and namespace share it. Their views are imported when they are first opened (`lazy_views.py`).
- `access`: `ROUTES`, who may open each route, and `SOCKETS`, who may follow each live view.
- `live`: `VIEWS`, the live views of its pages by name.
- `navigation`: `ITEMS`, the links to its pages from every page.
- `search`: `SOURCES`, its sources for the search by name.

There is no list of features: a package in this folder is registered by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

from django.urls import URLPattern, URLResolver, get_resolver, include, path

from hekla import pages
from hekla.apps.accounts.access import RouteAccess, Verdicts
from hekla.apps.search import registry as search
from hekla.apps.search.registry import Source
from hekla.lib.late_imports import import_alone
from hekla.live import registry as live
from hekla.live.registry import LiveView
from hekla.pages.lazy_views import lazy_views

_LATE = ("hekla.live.routing", "hekla.live.proxy.requests")
"""Further code of web processes that is imported when it is first needed."""


@cache
def modules(name: str) -> Sequence[ModuleType]:
    """The modules of that name, of all features that have one, in the order of the features' names."""
    features = (f"{pages.__name__}.{one.name}.{name}" for one in iter_modules(pages.__path__) if one.ispkg)
    return [import_alone(full_name) for full_name in features if find_spec(full_name)]


def urlpatterns() -> list[URLResolver]:
    """The URL patterns of all features."""
    groups: dict[tuple[str, str], list[URLPattern | URLResolver]] = {}
    for module in modules("urls"):
        group = groups.setdefault((module.prefix, getattr(module, "app_name", "")), [])
        group.extend(module.urlpatterns)
    return [
        path(prefix, include((patterns, namespace)) if namespace else include(patterns))
        for (prefix, namespace), patterns in groups.items()
    ]


@cache
def routes() -> Mapping[str, RouteAccess]:
    """The declared access of each route of the pages, by the route's name."""
    return {name: access for module in modules("access") for name, access in getattr(module, "ROUTES", {}).items()}


@cache
def sockets() -> Mapping[str, Verdicts]:
    """Who may follow each live view, and logs. Sockets take no tokens; a list contains only what its reader may see."""
    return {name: who for module in modules("access") for name, who in getattr(module, "SOCKETS", {}).items()}


@cache
def live_views() -> Mapping[str, Sequence[LiveView]]:
    """The live views of all pages, by name."""
    return {name: views for module in modules("live") for name, views in module.VIEWS.items()}


@cache
def search_sources() -> Sequence[Source]:
    """The sources of all features for the search by name."""
    return [source for module in modules("search") for source in module.SOURCES]


def register_all() -> None:
    """Register the live views and search sources with the packages that serve them, which import them when needed."""
    live.add_source(live_views)
    search.add_sources(search_sources)


def load_start_page() -> None:
    """Import what the first page after the sign-in needs. Raises the errors of modules."""
    import_alone(f"{pages.__name__}.home.views")
    modules("navigation")
    routes()


def load_all() -> Iterator[None]:
    """Import everything that is otherwise imported when it is first needed, and pause between modules.

    Raises the errors of modules.
    """
    for view in lazy_views(get_resolver().url_patterns):
        view.load()
        yield
    for name in _LATE:
        import_alone(name)
        yield
    live_views()
    search_sources()
