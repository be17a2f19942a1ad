"""Pages of price lists: all of them, one with its prices, and the form of a new one."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import require
from hekla.apps.prices import labels, selectors, services
from hekla.domain.errors import HeklaError, NotFound
from hekla.domain.prices import PriceSpec
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.operations.tabs import tabs
from hekla.pages.prices.forms import PriceListForm
from hekla.pages.prices.tables import PriceListsFilter, PriceListsTable, state_badge


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """List the price lists."""
    user = person(request)
    facts = {"valid": selectors.at(clock.now())}
    found = listing(request, PriceListsTable, selectors.visible_to(user), PriceListsFilter, facts=facts)
    context = {"lists": found, "may_set": selectors.may_set(user), "tabs": tabs("operations:cost")}
    return render(request, "prices/list.html", context)


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show the prices of a list, with the factors of those queues that the person can see."""
    user, now = person(request), clock.now()
    found = selectors.get(uid, user)
    spec = selectors.spec_for(found, user)
    context = {
        "list": found,
        "spec": spec,
        "state": state_badge(found, selectors.at(now)),
        "until": selectors.until(found),
        "windows": [(labels.window(one), one.factor) for one in spec.windows],
        "zone": selectors.zone().key,
        "may_set": selectors.may_set(user),
        "may_delete": selectors.may_set(user) and found.begin_at > now,
    }
    return render(request, "prices/detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a price list. `from`: the list whose prices the form begins with."""
    user = person(request)
    require(user, Permission.MANAGE_CLUSTERS)
    form = PriceListForm(request.POST or None, user=user, source=_source(request), now=clock.now())
    if request.method == "POST" and form.is_valid():
        try:
            made = services.create(spec=form.spec(), begin_at=form.begin_at(), user=user, now=clock.now())
            messages.success(request, _("The price list is saved."))
            return redirect("prices:detail", made.uid)
        except HeklaError as error:
            form.attach_problems(error)
    return render(request, "prices/form.html", {"form": form, "zone": selectors.zone().key})


def _source(request: HttpRequest) -> PriceSpec | None:
    try:
        found = selectors.get(UUID(request.GET.get("from", "")), person(request))
    except (ValueError, NotFound):
        return None
    return selectors.spec_for(found, person(request))


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete a list that has not begun."""
    services.delete(selectors.get(uid, person(request)), user=person(request), now=clock.now())
    messages.success(request, _("The price list is deleted."))
    return redirect("prices:list")
