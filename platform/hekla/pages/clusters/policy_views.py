"""The scheduling policy of a cluster: the current version, earlier ones, and a trial of a new one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters import services as cluster_services
from hekla.apps.clusters.models import Cluster, PolicyVersion
from hekla.apps.forms import attach
from hekla.domain.errors import Invalid, Refused
from hekla.engine import policy
from hekla.lib import clock
from hekla.lib.diff import DiffLine, diff_lines
from hekla.pages.clusters import policy_inputs
from hekla.pages.clusters.policy_form import PolicyForm
from hekla.pages.frame.people import person
from hekla.scheduling import policies, policy_check
from hekla.simulation.policy_trial import try_policy

_VERSIONS = 20
_MAX_DIFFERENCES = 200


@dataclass(frozen=True, slots=True)
class PolicyVersionView:
    """A policy version, and its difference from the version before."""

    row: PolicyVersion
    changes: list[DiffLine]


@require_http_methods(["GET", "POST"])
def show(request: HttpRequest) -> HttpResponse:
    """Show the policy and its history. A POST with `try` tries the new policy; any other POST applies it."""
    user = person(request)
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        raise Refused(_("Only operators and platform admins can see the scheduling policy."))
    every = list(clusters.all_clusters())
    cluster = next((one for one in every if one.name == request.GET.get("cluster")), every[0] if every else None)
    if cluster is None:
        return redirect("clusters:list")
    if request.method == "POST":
        account_services.require(user, Permission.MANAGE_CLUSTERS)
    text = policies.text_in_force(cluster)
    form = PolicyForm(request.POST or None, stored=lambda: {"text": policies.text_in_force(cluster)})
    context = {"form": form, "cluster": cluster, "clusters": every, "versions": _versions(cluster)}
    described = text
    if request.method == "POST" and form.is_valid():
        try:
            wanted = policy.parse(form.cleaned_data["text"])
            described = form.cleaned_data["text"]
            if "try" not in request.POST:
                return _put_in_force(request, cluster, form)
        except (Invalid, Refused) as error:
            attach(form, error)
        else:
            context |= _tried(cluster, text, form.cleaned_data["text"], wanted)
    context["inputs"] = policy_inputs.view_of(cluster, described)
    return render(request, "clusters/policy.html", context)


def _put_in_force(request: HttpRequest, cluster: Cluster, form: PolicyForm) -> HttpResponse:
    user = person(request)
    policy_check.parse_for(cluster, form.cleaned_data["text"])
    with form.saving():
        cluster_services.set_policy(cluster, **form.cleaned_data, by=user, actor=actor_of(user), now=clock.now())
    messages.success(request, _("The policy takes effect in the next scheduling cycle."))
    return redirect(f"{reverse('clusters:policy')}?cluster={cluster.name}")


def _tried(cluster: Cluster, old: str, new: str, wanted: policy.SchedulerPolicy) -> dict[str, Any]:
    trial = try_policy(cluster, policies.in_force(cluster), wanted, now=clock.now())
    return {
        "trial": trial,
        "differences": trial.differences[:_MAX_DIFFERENCES],
        "hidden": max(0, len(trial.differences) - _MAX_DIFFERENCES),
        "changes": diff_lines(old, new),
    }


def _versions(cluster: Cluster) -> list[PolicyVersionView]:
    """The newest versions first. The first version of all is compared with Hekla's initial policy."""
    rows = list(clusters.policies(cluster)[: _VERSIONS + 1])
    return list(_compared(rows))[:_VERSIONS]


def _compared(rows: Iterable[PolicyVersion]) -> Iterator[PolicyVersionView]:
    for row, before in pairwise([*rows, policies.first()]):
        yield PolicyVersionView(row, diff_lines(before.text, row.text))
