"""The template context of the list of jobs, shared by the full page and its live parts."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.apps import paging
from hekla.apps.accounts.models import User
from hekla.apps.jobs import filters, groups, selectors
from hekla.apps.jobs.models import Job, JobListSettings
from hekla.apps.query_parameters import Known, without_empty
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.errors import Invalid, Problem
from hekla.pages.frame.selects import options
from hekla.pages.jobs import columns
from hekla.pages.jobs import context as job_context

PARAMETERS: Known = {
    **dict.fromkeys(filters.JobFilter.base_filters, ()),
    "sort": filters.SORT_VALUES,
    "group": groups.LABELS,
    "deleted": ("yes",),
    "all": ("yes",),
    "cursor": (),
}
"""The parameters of the list."""


def filtered_jobs(query: QueryDict, user: User) -> QuerySet[Job]:
    """The visible jobs that match the filters of the query. Raises Invalid."""
    return filters.narrowed(_visible(query, user, tenancy.rights(user)), query, user)


def _visible(query: QueryDict, user: User, rights: Rights) -> QuerySet[Job]:
    return (selectors.deleted_for if query.get("deleted") == "yes" else selectors.visible_to)(user, rights)


def context(
    query: QueryDict, user: User, *, rights: Rights | None = None, arrangement: JobListSettings | None = None
) -> dict[str, Any]:
    """The content of the list for this query. Invalid filters give problems and an empty list.

    Empty and unknown parameters are ignored: forms without JavaScript send empty fields, bookmarks and other sites add
    words, and a list changes nothing. An action on all jobs of the list refuses them (`require_effective`).

    `rights`, `arrangement`: if already read.
    """
    rights = rights or tenancy.rights(user)
    visible, problems = _visible(query, user, rights), list[Problem]()
    try:
        narrow = filters.narrowing(visible, query, user)
    except Invalid as error:
        problems = [Problem(_label(one.path), one.message) for one in error.problems]
        narrow = _no_jobs
    words = filters.words(query)
    counts, count = _numbers(visible, narrow, words, is_valid=not problems)
    by = query.get("group", "") if query.get("group") in groups.LABELS else ""
    if by:
        groups_of = groups.of(narrow(counts=True), by, query)
        body = {"groups": groups_of, "group": by, "group_labels": groups.LABELS}
    else:
        found = narrow(finds_many=count["is_more"])
        body = _rows(query, found, selectors.action_predicate(user, rights), arrangement or selectors.arrangement(user))
    return body | {
        "problems": problems,
        "sort": query.get("sort", ""),
        "query": without_empty(query).urlencode(),
        "of_deleted": query.get("deleted") == "yes",
        "is_filtered": bool(words),
        "count": count,
        "phases": job_context.phases(counts, query.getlist("phase")),
    }


def _numbers(
    visible: QuerySet[Job], narrow: Callable[..., QuerySet[Job]], words: Mapping[str, list[str]], *, is_valid: bool
) -> tuple[dict[str, int], dict[str, Any]]:
    """The number of visible jobs in each phase, and of those that match (`_count`).

    If nothing but phases narrows the list, the latter is the sum of the former: each counts further than the limit.
    """
    if is_valid and words.keys() <= {"phase"}:
        counts = selectors.phase_counts(visible)
        return counts, _count(sum(counts.get(phase, 0) for phase in set(words.get("phase", counts))))
    counts = selectors.phase_counts(visible, found=narrow(counts=True, most=selectors.MOST_COUNTED + 1))
    return counts, _count(counts.pop("found", 0))


def _no_jobs(**_purpose: object) -> QuerySet[Job]:
    return Job.objects.none()


def choices(query: QueryDict, user: User, rights: Rights, scope: Tenant | None) -> dict[str, Any]:
    """The filters around the list: the choices, and the current values. `scope`: the tenant of all lists, if any."""
    narrowing = filters.words(query)
    if scope and query.get("tenant") == scope.slug:  # the switch of tenants shows it
        narrowing.pop("tenant", None)
    places = queues.names(user, rights)
    known = [(name, name) for name, _cluster in places]
    return {
        "queue_options": options(known, {query.get("queue", "")}) if len(known) > 1 else "",
        "clusters": sorted({cluster for _name, cluster in places}),
        "group_labels": groups.LABELS,
        "filters": {name: query.get(name, "") for name in filters.JobFilter.base_filters},
        "chips": _chips(query, narrowing),
    }


def _rows(
    query: QueryDict, found: QuerySet[Job], may_act: Callable[[Job], bool], arrangement: JobListSettings
) -> dict[str, Any]:
    order, cursor = filters.order(query), query.get("cursor", "")
    page = paging.page(found, order, cursor, job_context.PAGE, read=selectors.listed)
    return {
        "rows": job_context.rows(page.rows, may_act),
        "columns": columns.chosen(arrangement.columns),
        "previous": _address(query, page.previous),
        "next": _address(query, page.next),
    }


def _count(count: int) -> dict[str, Any]:
    """The count up to a limit, and whether there are more."""
    return {"n": min(count, selectors.MOST_COUNTED), "is_more": count > selectors.MOST_COUNTED}


def _address(query: QueryDict, cursor: str) -> str:
    """The URL query of another page of the same list; empty without a cursor."""
    changed = query.copy()
    changed["cursor"] = cursor
    return f"?{changed.urlencode()}" if cursor else ""


_ALWAYS_VISIBLE = {"q", "phase", "whose", "queue"}


def _chips(query: QueryDict, narrowing: Mapping[str, list[str]]) -> list[dict[str, str]]:
    """The active filters without a permanent field, each with the URL query that removes it."""
    return [
        {"label": _label(name), "value": values[-1], "without": _without(query, name)}
        for name, values in narrowing.items()
        if name not in _ALWAYS_VISIBLE
    ]


def _label(name: str) -> str:
    return {
        "q": _("Name or owner"),
        "name": _("Name"),
        "cluster": _("Cluster"),
        "tenant": _("Tenant"),
        "kind": _("Kind"),
        "owner": _("Owner"),
        "priority_min": _("Minimum priority"),
        "priority_max": _("Maximum priority"),
        "submitted_after": _("Submitted after"),
        "submitted_before": _("Submitted before"),
        "finished_after": _("Finished after"),
        "finished_before": _("Finished before"),
        "failed_pods": _("With failed pods"),
        "reason": _("Reason"),
    }.get(name, name)


def _without(query: QueryDict, name: str) -> str:
    changed = query.copy()
    for word in (name, "cursor"):
        changed.pop(word, None)
    return f"?{changed.urlencode()}"
