"""Views that are imported when they are first opened, so that the console answers before all of its pages are loaded.

The views of all features import the half of Hekla, which takes longer than everything else in a start. A URL module
names its modules of views instead of importing them, and is otherwise written as usual:

    views = LazyViews("hekla.pages.greeting.views")
    urlpatterns = [path("", views.show, name="show")]
"""

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from django.core.checks import CheckMessage, Error
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern
from django.utils.functional import cached_property
from django.utils.translation import get_language

from hekla.lib.late_imports import import_alone


class LazyView:
    """A view function of a module that may not be imported yet. It has the attributes of the function."""

    def __init__(self, module: str, name: str) -> None:
        # Django identifies a view by these two, and asks for them when it makes the tables of `reverse`.
        self.__module__, self.__name__, self.__qualname__ = module, name, name
        self._view: Any = None

    def __call__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # noqa: ANN401  (a view's own)
        """Answer the request."""
        answer: HttpResponseBase = self.load()(request, *args, **kwargs)
        return answer

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (`csrf_exempt` and others, which decorators set)
        if name in _OF_CLASSES:
            raise AttributeError(name)
        return getattr(self.load(), name)

    def load(self) -> Any:  # noqa: ANN401  (a view)
        """The view itself. Raises ImportError, AttributeError."""
        if self._view is None:
            self._view = getattr(import_alone(self.__module__), self.__name__)
        return self._view


_OF_CLASSES = frozenset({"view_class", "view_initkwargs"})
"""Attributes of views that are classes. `reverse` looks for them, which must not import the module."""


class LazyViews:
    """A module of view functions."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> LazyView:
        if name.startswith("_"):  # Python and tools look for special names
            raise AttributeError(name)
        return LazyView(self._module, name)


class LazyUrls(URLResolver):
    """URLs below a prefix, in a namespace, whose module is imported at the first request or `reverse` below the prefix.

    Django fills the tables of all resolvers for any `reverse`. Those of a namespace can wait until someone looks there.
    """

    def __init__(self, prefix: str, module: str, namespace: str) -> None:
        super().__init__(RoutePattern(prefix, is_endpoint=False), module, app_name=namespace, namespace=namespace)
        self._module = module

    @cached_property
    def urlconf_module(self) -> ModuleType:
        """The module with `urlpatterns`. Raises ImportError."""
        return import_alone(self._module)

    def _populate(self) -> None:
        """Called for any `reverse`, and by the properties below."""

    def _fill(self) -> None:
        if get_language() not in self._reverse_dict:
            super()._populate()

    @property
    def reverse_dict(self) -> Any:  # noqa: ANN401  (of Django, without a type)
        """The routes by name."""
        self._fill()
        return super().reverse_dict

    @property
    def namespace_dict(self) -> Any:  # noqa: ANN401
        """The inner namespaces by name."""
        self._fill()
        return super().namespace_dict

    @property
    def app_dict(self) -> Any:  # noqa: ANN401
        """The names of inner namespaces by application."""
        self._fill()
        return super().app_dict


def lazy_views(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[LazyView]:
    """The views of these patterns that may not be imported yet."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from lazy_views(pattern.url_patterns)
        elif isinstance(pattern.callback, LazyView):
            yield pattern.callback


def check(app_configs: object = None, **_options: Any) -> list[CheckMessage]:  # noqa: ANN401, ARG001  (of Django)
    """Views that do not exist: `manage.py check` finds them, because a start does not."""
    found: list[CheckMessage] = []
    for view in lazy_views(get_resolver().url_patterns):
        try:
            view.load()
        except (ImportError, AttributeError) as error:
            found.append(Error(f"{view.__module__}.{view.__name__}: {error}", id="hekla.E005"))
    return found
