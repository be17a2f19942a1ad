"""Draining of nodes: a person cordons a node, and its pods are evicted, as the scheduler evicts pods.

The node stays in this state until it is uncordoned. Meanwhile the controller evicts pods that a decision from before
bound there, and those that a disruption budget protected at first. External pods belong to others, and stay.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import MAX_DRAIN_REASON, Node
from hekla.apps.event_log.services import CONTROLLER, Actor, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.selectors.replicas import placed
from hekla.apps.jobs.services.transitions import evict
from hekla.domain import events
from hekla.domain.errors import Refused
from hekla.domain.job_kinds import EXTERNAL

ACTION = "drain"
"""The action of these evictions, beside those of the scheduler."""
LATE = timedelta(seconds=5)
"""A pod that was bound so long after the drain began tolerates cordoned nodes: evicted, it would return for ever."""


_NO_PODS = "none"
_MOST_NAMED_PODS, _MOST_NAMES = 2_000, 5
"""Pods in a token, and names in a message."""


class DrainPreviewOutdated(Refused):
    """Other pods are on the node than the preview said. Nothing was changed."""

    code = "preview_outdated"


@dataclass(frozen=True, slots=True)
class DrainedPods:
    """How many pods of how many jobs are evicted."""

    pods: int = 0
    jobs: int = 0


def token_of(keys: Iterable[int]) -> str:
    """Names these pods (primary keys) in a short text; empty if there are too many: then nothing is compared."""
    found = sorted(keys)
    return ("-".join(map(str, found)) or _NO_PODS) if len(found) <= _MOST_NAMED_PODS else ""


def drain(node: Node, *, reason: str, user: User, now: datetime, token: str = "") -> DrainedPods:
    """Cordon a node and evict its pods. Of a node that drains already: those that are left, with the new reason.

    `token`: of the preview that the person read; empty: none. Raises Forbidden, NotFound if the node is gone, Refused
    without a reason, or if Volcano schedules the cluster; DrainPreviewOutdated if other pods are there now.
    """
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    reason = " ".join(reason.split())
    if not reason or len(reason) > MAX_DRAIN_REASON:
        sentence = _("Give a reason with at most %d characters. The owners of the jobs see it.")
        raise Refused(sentence % MAX_DRAIN_REASON, "reason")
    if node.cluster.leads_jobs:
        raise Refused(_("Volcano schedules this cluster. Drain its nodes with kubectl."))
    actor = actor_of(user)
    with unit_of_work():
        clusters.begin_draining(node, reason=reason, actor=actor, now=now)
        if token:
            _require_same(node, token)
        found = _evict(node.cluster_id, evictable_on(node).values_list("pk", flat=True), reason, actor, now)
        clusters.note_drain(node, pods=found.pods, jobs=found.jobs, actor=actor, now=now)
    return found


def _require_same(node: Node, token: str) -> None:
    """Raises DrainPreviewOutdated with the pods that are new on the node, or gone, since the preview."""
    words = [] if token == _NO_PODS else token.split("-")
    if len(words) > _MOST_NAMED_PODS or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):  # noqa: PLR2004
        raise DrainPreviewOutdated(_("The preview is not known. Look at it again."))
    before, present = {int(word) for word in words}, set(evictable_on(node).values_list("pk", flat=True))
    if before == present:
        return
    here = Pod.objects.filter(job__cluster=node.cluster_id, pk__in=before ^ present).select_related("job")
    changed = list(here.defer("job__spec").order_by("job__name", "pk"))
    facts = {
        "new": _named([pod for pod in changed if pod.pk in present]),
        "gone": _named([pod for pod in changed if pod.pk in before]),
    }
    raise DrainPreviewOutdated(_("The pods here have changed. New: %(new)s. Gone: %(gone)s. Look again.") % facts)


def _named(pods: Sequence[Pod]) -> str:
    names = [f"{pod.job.name} {pod}" for pod in pods[:_MOST_NAMES]]
    if len(pods) > _MOST_NAMES:
        names.append(_("%d more") % (len(pods) - _MOST_NAMES))
    return _(", ").join(names) or _("none")


def evict_late(cluster_id: int, epoch: int, pod_ids: Collection[int], reason: str, *, now: datetime) -> bool:
    """Evict these pods of a node that drains. Returns whether any was evicted. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        return bool(_evict(cluster_id, pod_ids, reason, CONTROLLER, now).pods)


def evictable_on(node: Node) -> QuerySet[Pod]:
    """The pods on a node that a drain evicts."""
    own = Pod.objects.filter(node=node.name, job__cluster=node.cluster_id, stopping=False)
    return placed(own).exclude(job__kind=EXTERNAL)


def _evict(cluster_id: int, pod_ids: Collection[int], reason: str, actor: Actor, now: datetime) -> DrainedPods:
    job_ids = set(Pod.objects.filter(pk__in=pod_ids).values_list("job", flat=True))
    jobs = job_rows.locked_in_order(cluster_id, sorted(job_ids))
    touched: set[int] = set()
    count = 0
    for pod in job_rows.pods(list(pod_ids)).values():  # read when their jobs are locked
        if (job := jobs.get(pod.job_id)) is None:
            continue
        event = events.PodEvicted(
            task=pod.task, index=pod.index, attempt=pod.attempt, action=ACTION, node=pod.node, message=reason
        )
        if evict(job, pod, event, actor=actor, now=now):
            touched.add(job.pk)
            count += 1
    return DrainedPods(count, len(touched))
