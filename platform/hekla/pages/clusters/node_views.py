"""The page of nodes."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import notices
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.queues import figures, node_usage
from hekla.scheduling import occupancy

_MACHINES = 16


@require_safe
def nodes(request: HttpRequest) -> HttpResponse:
    """List all nodes."""
    return render(
        request,
        "clusters/nodes.html",
        node_parts(person(request), request.GET.get("page", ""), current_tenant.rights(request)),
    )


def node_parts(user: User, number: str, rights: Rights | None = None) -> dict[str, Any]:
    """The live parts of the page of nodes, at most 16 nodes a page. `rights`: the person's rights, if already read."""
    whole = occupancy.now()
    page = Paginator(figures.nodes(whole), _MACHINES).get_page(number)
    views = list(page.object_list)
    rights = rights or tenancy.rights(user)
    figures.name_jobs(views, user, rights)
    figures.name_cards(views, user, rights)
    node_usage.add_usage(views)
    return {
        "since": whole.number,
        "notices": notices.everywhere(),
        "views": views,
        "number": page.number,
        "count": page.paginator.count,
        "previous": f"?page={page.number - 1}" if page.has_previous() else "",
        "next": f"?page={page.number + 1}" if page.has_next() else "",
    }
