"""The page that imports people from a table."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hekla.apps.invitations import importing
from hekla.apps.invitations.forms import ImportForm
from hekla.apps.invitations.issuing import Issued, issue
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.lib import clock
from hekla.pages.frame.downloads import cell, csv_text
from hekla.pages.frame.people import person

_HEAD = ("username", "email", "name", "tenant", "role", "link")


@never_cache
@require_http_methods(["GET", "POST"])
def import_people(request: HttpRequest) -> HttpResponse:
    """Preview or import a table of people."""
    user = person(request)
    tenancy_services.require_some(user)
    initial, tenants = {"tenant": request.GET.get("tenant", "")}, tenancy.managed_by(user)
    form = ImportForm(request.POST or None, request.FILES or None, tenants=tenants, initial=initial)
    context: dict[str, Any] = {"form": form}
    if request.method == "POST" and form.is_valid():
        table, into = form.cleaned_data["table"], form.cleaned_data["tenant"]
        is_done = request.POST.get("do") == "import"
        act = importing.import_rows if is_done else importing.preview
        outcomes = act(table.rows, into=into, by=user, now=clock.now())
        rows = issue(outcomes, request.build_absolute_uri)
        context |= {"unused": table.unused, "is_done": is_done, "counts": importing.counted(outcomes)}
        context |= {"rows": rows, "links_file": _links_file(rows)}
    return render(request, "invitations/import.html", context)


def _links_file(rows: Sequence[Issued]) -> str:
    """The links as a CSV data URL in the page, because they are stored nowhere; empty without links."""
    links = [_of_link(row) for row in rows if row.link]
    mark = "\ufeff"  # a byte order mark, by which spreadsheets recognize UTF-8
    return f"data:text/csv;charset=utf-8,{quote(mark + csv_text([_HEAD, *links]))}" if links else ""


def _of_link(row: Issued) -> list[str]:
    made = row.outcome.invitation
    assert made is not None  # noqa: S101  (there is a link)
    known = (made.username, made.email, made.display_name, made.tenant.slug, made.role, row.link)
    return [cell(value) for value in known]
