"""The page of search results. The command palette gets the same results from REST."""

from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from hekla.apps.search import registry, selectors
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Show everything whose name contains the text `q`."""
    text = request.GET.get("q", "")
    hits = selectors.find(person(request), text, get_language() or "en", rights=current_tenant.rights(request))
    found = [(registry.get(kind), list(some)) for kind, some in groupby(hits, key=lambda hit: hit.kind)]
    groups = [(source.label, source.icon, some) for source, some in found]
    context = {
        "q": text[: selectors.MAX_LENGTH],
        "groups": groups,
        "is_short": len(text.strip()) < selectors.MIN_LENGTH,
    }
    return render(request, "search/results.html", context)
