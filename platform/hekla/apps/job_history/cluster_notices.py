"""What keeps jobs and pods from starting, and is not about them: its cluster's controller, unready nodes."""

from django.utils.translation import gettext as _

from hekla.apps.clusters import notices, selectors
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.sentences import together, translated

_UNSCHEDULABLE = "not schedulable"
"""The engine's word for nodes that are cordoned or not ready."""
_MAX_NODES = 3


def of_job(job: Job) -> list[str]:
    """The notices for a job, one sentence or two each; none for a job that has ended.

    One query if the job is refused by nodes that are not ready, otherwise none.
    """
    if job.is_final or job.deleted_at:
        return []
    controller = notices.of_cluster(job.cluster)
    return [*filter(None, [controller]), *(_nodes(job) if _is_refused_by_nodes(job) else ())]


def of_pod(pod: Pod) -> list[str]:
    """The notices for a pod: those of its job until it has a node, then that about the controller; none after its end.

    No query, except as for its job.
    """
    if pod.is_final:
        return []
    if not pod.node:
        return of_job(pod.job)
    return [*filter(None, [notices.of_cluster(pod.job.cluster)])]


def _is_refused_by_nodes(job: Job) -> bool:
    return any(_UNSCHEDULABLE in (reason.get("nodes") or {}) for reason in job.waiting)


def _nodes(job: Job) -> list[str]:
    """Why nodes of its cluster are not ready, as they report it themselves."""
    unready = selectors.nodes_of(job.cluster).filter(is_ready=False).exclude(message="")[:_MAX_NODES]
    sentence = _("Node %(name)s accepts no pods:")
    return [together([sentence % {"name": node.name}, translated(node.message)]) for node in unready]
