"""What the submission form offers to a tenant."""

from collections.abc import Iterable, Sequence

from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.apps.clusters import selectors as clusters
from hekla.apps.priorities import selectors as priorities
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.pages.job_forms.placement_lines import GPU_MODEL
from hekla.pages.job_forms.submission_form import InitialValues, SubmissionForm
from hekla.scheduling.topology import tier_names


def open_queues(tenant: Tenant) -> list[Queue]:
    """The queues that the tenant may submit to."""
    return queues.listed_open_to(tenant)


def submission_form(
    data: QueryDict | None, first: InitialValues, tenant: Tenant, open_ones: Sequence[Queue] | None = None
) -> SubmissionForm:
    """The form with the choices of the tenant: its queues, their clusters' GPU models and tiers, priority classes.

    `open_ones`: those of `open_queues`, if already read.
    """
    classes = [(one.name, f"{one.name} ({one.value})") for one in priorities.offer_to(tenant).classes]
    open_ones = open_queues(tenant) if open_ones is None else open_ones
    places = {queue.cluster_id: queue.cluster for queue in open_ones}
    environments, claims = clusters.environments_and_claims([*places], tenant.slug)
    models, reported = clusters.values_and_tiers([*places], GPU_MODEL)
    tiers = [tier for cluster in places.values() for tier in tier_names(cluster, reported.get(cluster.pk, ()))]
    return SubmissionForm(
        data,
        first,
        queues=_queues(tenant, open_ones),
        environments=environments,
        gpu_models=models,
        classes=classes,
        tiers=dict.fromkeys(tiers),
        claims=claims,
    )


def usual_queue(open_ones: Iterable[Queue]) -> str:
    """The default queue: `default`, where manifests without a queue go; else the first open one; else empty."""
    names = [queue.name for queue in open_ones if queue.is_open]
    return "default" if "default" in names else next(iter(names), "")


def offered_values(tenant: Tenant) -> dict[str, list[str]]:
    """The values that fields of a manifest can have for this tenant, by the name of the field."""
    names = [name for name, _label in _queues(tenant, queues.open_to(tenant))]
    classes = [one.name for one in priorities.offer_to(tenant).classes]
    environments = list(clusters.environments().values_list("name", flat=True))
    of_classes = {"priority_class": classes, "priorityClassName": classes}
    return {"queue": names, "hekla.io/environment": environments, "environment": environments, **of_classes}


def _queues(tenant: Tenant, open_ones: Iterable[Queue]) -> list[tuple[str, str]]:
    found = [
        (queue.name, queue.name if queue.is_open else f"{queue.name} ({queue.get_state_display()})")
        for queue in open_ones
    ]
    over = [
        (federated.name, _("%s (the cluster that starts it first)") % federated)
        for federated in queues.listed_federated_open_to(tenant)
    ]
    return [*found, *over]
