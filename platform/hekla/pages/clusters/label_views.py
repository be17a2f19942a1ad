"""The page with the labels of a node, where operators set some for the scheduler."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts import selectors as people
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Node
from hekla.apps.forms import attach
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.lib import clock
from hekla.pages.frame.people import person

_LONGEST_KEY, _LONGEST_VALUE = 317, 63


class NodeLabelForm(forms.Form):
    """A label to set."""

    label = forms.CharField(
        label=gettext_lazy("Label"),
        max_length=_LONGEST_KEY,
        help_text=gettext_lazy("For example: fast-disk, or example.com/rack."),
    )
    value = forms.CharField(label=gettext_lazy("Value"), max_length=_LONGEST_VALUE, required=False)


@require_http_methods(["GET", "POST"])
def labels(request: HttpRequest, node_id: int) -> HttpResponse:
    """Show the labels of a node, set one (`label`, `value`), or remove one (`remove`)."""
    user, node = person(request), selectors.node(node_id)
    may_edit = people.may(user, Permission.MANAGE_CLUSTERS)
    if request.method == "POST":
        accounts.require(user, Permission.MANAGE_CLUSTERS)
    removed = request.POST.get("remove", "")
    form = NodeLabelForm(None if removed else request.POST or None)
    if request.method == "POST" and (removed or form.is_valid()):
        change = {removed: None} if removed else {form.cleaned_data["label"]: form.cleaned_data["value"]}
        try:
            services.label_node(node, change, actor=actor_of(user), now=clock.now())
        except HeklaError as error:
            attach(form, _at_field(error)) if form.is_bound else messages.error(request, error.message)
        else:
            messages.success(request, _("Label removed.") if removed else _("Label set."))
            return redirect("clusters:labels", node.pk)
    return render(request, "clusters/labels.html", {"node": node, "form": form, "may_edit": may_edit, **_rows(node)})


def _at_field(error: HeklaError) -> HeklaError:
    """Problems of a name at the field of the name, and of its value at that of the value."""
    if not isinstance(error, Invalid):
        return error
    of_name = any(problem.path.endswith("[key]") for problem in error.problems)
    field = "label" if of_name else "value"
    return Invalid([Problem(field, problem.message) for problem in error.problems])


def _rows(node: Node) -> dict[str, list[tuple[str, str]]]:
    reported = sorted((key, str(value)) for key, value in node.labels.items() if key not in node.set_labels)
    return {"set": sorted(node.set_labels.items()), "reported": reported}
