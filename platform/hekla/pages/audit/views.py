"""The page of the audit log, and its file."""

from collections.abc import AsyncIterator, Iterator
from datetime import tzinfo
from functools import lru_cache

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.audit import selectors as audit
from hekla.apps.audit.selectors import AuditEntry, AuditQuery
from hekla.apps.event_log.words import KINDS
from hekla.apps.tenancy import selectors as tenancy
from hekla.lib import clock
from hekla.pages.audit.rows import audit_rows
from hekla.pages.frame import downloads, person_picker
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options

HEAD = ("number", "time", "person", "impersonated_by", "kind", "sentence", "object", "subject", "tenant")


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """List audited actions, newest first."""
    user, query = person(request), audit.parse_query(request.GET.dict())
    tenants = audit.audited(user)
    acts = audit.acts(user, query, most=audit.PAGE + 1, readable=tenants)
    filters = request.GET.copy()
    filters.pop("before", None)
    context = {
        "entries": acts[: audit.PAGE],
        "rows": audit_rows(acts[: audit.PAGE], user),
        "older": acts[audit.PAGE - 1].event.pk if len(acts) > audit.PAGE else None,
        "query": query,
        "filters": any(filters.values()),
        "file": f"{reverse('audit_file')}?{filters.urlencode()}",
        "most": audit.MOST_EXPORTED,
        "tenants": options(((one.slug, one.name) for one in tenants), {query.tenant}) if len(tenants) > 1 else "",
        "kinds": _kinds(translation.get_language(), query.kind if query.kind in KINDS else ""),
        "people": person_picker.options(tenancy.known_people(user)),
    }
    return render(request, "audit/list.html", context)


@lru_cache(maxsize=512)
def _kinds(_language: str | None, chosen: str) -> SafeString:
    """The options of all kinds with their labels in the language in force, by label."""
    labelled = sorted([(kind, str(words)) for kind, words in KINDS.items()], key=lambda one: one[1])
    return options(labelled, {chosen})


@require_safe
def table_file(request: HttpRequest) -> StreamingHttpResponse:
    """Download the matching entries of all pages as CSV."""
    user, query = person(request), audit.parse_query(request.GET.dict())
    audit.audited(user)  # refuses before the file begins
    text = lines(user, query, translation.get_language() or "en", timezone.get_current_timezone())
    response = StreamingHttpResponse(text, content_type="text/csv; charset=utf-8")
    return downloads.attach(response, f"audit-{clock.now():%Y-%m-%d}.csv")


async def lines(user: User, query: AuditQuery, language: str, zone: tzinfo) -> AsyncIterator[str]:
    """The lines of the file in chunks. Times are in UTC. `zone`: that of the days in the query.

    The response is sent after the request: its language and zone are no longer in force then.
    """
    yield downloads.csv_text([HEAD])
    chunks = audit.all_acts(user, query)
    while text := await sync_to_async(_chunk)(chunks, language, zone):
        yield text


def _chunk(chunks: Iterator[list[AuditEntry]], language: str, zone: tzinfo) -> str:
    with translation.override(language), timezone.override(zone):
        return downloads.csv_text([_row(entry) for entry in next(chunks, [])])


def _row(entry: AuditEntry) -> list[str]:
    event = entry.event
    cells = (
        *(event.pk, event.at, event.actor_name, event.impersonator_name, event.kind),
        *(entry.sentence.text, entry.object.name, event.subject, entry.tenant_slug),
    )
    return [downloads.cell(cell) for cell in cells]
