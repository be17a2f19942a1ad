"""The help pages in the browser."""

from collections.abc import Sequence
from functools import cache
from unicodedata import east_asian_width

import nh3
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hekla.apps.sentences import space_after
from hekla.domain.errors import NotFound
from hekla.pages.help import documents


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List all help pages."""
    return render(request, "help/index.html", {"pages": documents.titles(get_language() or "en")})


@require_safe
def page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one help page."""
    language = get_language() or "en"
    pages = dict(documents.titles(language))
    if name not in pages:
        raise NotFound(_("Unknown help page."))
    html = _html(documents.text(name, language))
    context = {"title": pages[name], "html": html, "pages": pages.items(), "name": name}
    return render(request, "help/page.html", context)


@cache
def _html(text: str) -> str:
    """The sanitized HTML of a page, without its title."""
    body = text.partition("\n")[2]
    renderer = MarkdownIt("commonmark").enable("table")
    renderer.add_render_rule("softbreak", _line_break)
    return nh3.clean(renderer.render(body))


def _line_break(_renderer: object, tokens: Sequence[Token], place: int, *_more: object) -> str:
    """A newline between words, or nothing between Chinese characters."""
    before = next((token.content for token in reversed(tokens[:place]) if token.content), "")
    after = next((token.content for token in tokens[place + 1 :] if token.content), "")
    return "" if space_after(before) == "" or (_is_wide(before[-1:]) and _is_wide(after[:1])) else "\n"


def _is_wide(character: str) -> bool:
    return character != "" and east_asian_width(character) in "WF"
