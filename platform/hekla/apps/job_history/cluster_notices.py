"""What keeps a job from starting that is not about the job: its cluster's controller, and nodes that are not ready."""

from django.utils.translation import gettext as _

from hekla.apps.clusters import notices, selectors
from hekla.apps.jobs.models import Job
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


def _is_refused_by_nodes(job: Job) -> bool:
    return any(_UNSCHEDULABLE in (reason.get("nodes") or {}) for reason in job.waiting)


def _nodes(job: Job) -> list[str]:
    """Why nodes of its cluster are not ready, as they report it themselves."""
    unready = selectors.nodes_of(job.cluster).filter(is_ready=False).exclude(message="")[:_MAX_NODES]
    sentence = _("Node %(name)s accepts no pods:")
    return [together([sentence % {"name": node.name}, translated(node.message)]) for node in unready]
