"""The help pages: Markdown files of `platform/help`, in the reader's language where there is a translation."""

from functools import cache
from pathlib import Path

import nh3
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.translation import get_language
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt

from hekla.domain.errors import NotFound
from hekla.project.checkout import CHECKOUT

FOLDER = CHECKOUT / "platform" / "help"
_ORDER = (
    "first-five-minutes", "jobs", "submitting", "flows", "batches", "schedules", "openpai", "queues", "environments",
    "administration", "examples", "demonstrations",
)  # fmt: skip


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """All pages."""
    return render(request, "help/index.html", {"pages": _pages(get_language() or "en")})


@require_safe
def page(request: HttpRequest, name: str) -> HttpResponse:
    """One page."""
    pages = dict(_pages(get_language() or "en"))
    if name not in pages:
        raise NotFound("There is no such help page.")
    text = _file(name, get_language() or "en").read_text(encoding="utf-8")
    context = {"title": pages[name], "html": _html(text), "pages": pages.items(), "name": name}
    return render(request, "help/page.html", context)


def _pages(language: str) -> list[tuple[str, str]]:
    names = [name for name in _ORDER if _file(name, language).is_file()]
    return [(name, _title(_file(name, language))) for name in names]


def _file(name: str, language: str) -> Path:
    translated = FOLDER / language / f"{name}.md"
    return translated if translated.is_file() else FOLDER / f"{name}.md"


def _title(file: Path) -> str:
    first = file.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").strip()


@cache
def _html(text: str) -> str:
    """Safe HTML of a page, without its title."""
    body = text.partition("\n")[2]
    return nh3.clean(MarkdownIt("commonmark").enable("table").render(body))


urlpatterns = [path("", index, name="index"), path("<slug:name>/", page, name="page")]
