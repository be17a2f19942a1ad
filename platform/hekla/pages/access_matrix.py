"""The access matrix: what the features declare about access, for each route of the URL configuration."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from hekla.api.openpai import access as openpai
from hekla.api.v1 import access as v1
from hekla.apps.accounts.access import RouteAccess
from hekla.apps.accounts.scopes import Scope
from hekla.pages import registry
from hekla.pages.impersonation import reach


def declared() -> Mapping[str, RouteAccess]:
    """The declared access of each route, by the route's name."""
    return {**registry.routes(), **v1.ROUTES, **openpai.ROUTES}


def answers() -> dict[str, Callable[..., Any]]:
    """The view of each route in the URL configuration, by the route's name."""
    return dict(_answers(get_resolver().url_patterns))


def _answers(patterns: list[URLPattern | URLResolver], namespace: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _answers(pattern.url_patterns, inner)
        else:
            yield f"{namespace}{pattern.name}", pattern.callback


def is_open_to_impersonation(name: str, verb: str) -> bool:
    """Whether the route accepts this verb from an admin who acts for a person, as that person or as the admin."""
    return name in reach.AS_ONESELF or reach.is_open(name, verb)


def scope_for(answer: Callable[..., Any], verb: str) -> Scope | None:
    """The scope that a token needs for the view and verb, or None if the view takes no tokens."""
    view = getattr(answer, "cls", None)
    if not getattr(view, "authentication_classes", ()):
        return None
    return Scope.READ if verb == "get" else getattr(view, "writes", Scope.ADMIN)
