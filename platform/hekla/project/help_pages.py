"""The help pages, as people read them."""

from functools import cache

import nh3
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.translation import get_language
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt

from hekla.apps.search import documents
from hekla.domain.errors import NotFound


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """All pages."""
    return render(request, "help/index.html", {"pages": documents.titles(get_language() or "en")})


@require_safe
def page(request: HttpRequest, name: str) -> HttpResponse:
    """One page."""
    language = get_language() or "en"
    pages = dict(documents.titles(language))
    if name not in pages:
        raise NotFound("There is no such help page.")
    html = _html(documents.text(name, language))
    context = {"title": pages[name], "html": html, "pages": pages.items(), "name": name}
    return render(request, "help/page.html", context)


@cache
def _html(text: str) -> str:
    """Safe HTML of a page, without its title."""
    body = text.partition("\n")[2]
    return nh3.clean(MarkdownIt("commonmark").enable("table").render(body))


urlpatterns = [path("", index, name="index"), path("<slug:name>/", page, name="page")]
