"""Higher priority first, among jobs and among pods of a job; lower priority may be evicted (`volcano-spec` §5.1)."""

from collections.abc import Sequence

from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

NEEDS: tuple[Need, ...] = ()


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs and pods, and name victims of lower priority."""
    session.register(ExtensionPoint.JOB_ORDER, option, _jobs, is_cacheable=True)
    session.register(ExtensionPoint.TASK_ORDER, option, _tasks)
    session.register(ExtensionPoint.SUBJOB_ORDER, option, lambda left, right: right.priority - left.priority)
    session.register(ExtensionPoint.JOB_STARVING, option, _is_starving, is_cacheable=True)
    session.register(ExtensionPoint.PREEMPTABLE, option, _lower, is_cacheable=True)
    session.register(ExtensionPoint.EVICTABLE, option, _lower_for_gang, is_cacheable=True)
    session.register(ExtensionPoint.SPARED, option, _higher, is_cacheable=True)


def _jobs(job: JobInfo) -> int:
    return -job.group.priority


def _tasks(left: PodInfo, right: PodInfo) -> int:
    return right.spec.priority - left.spec.priority


def _is_starving(job: JobInfo) -> bool:
    """Whether any of its pods is not placed yet."""
    return job.ready_count + job.waiting_count < job.size


def _lower(pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
    return [victim for victim in candidates if _rank(victim, pod) < _rank(pod, victim)]


def _rank(pod: PodInfo, beside: PodInfo) -> int:
    """The priority to compare with another pod: the pod's own within one job, else that of its job."""
    return pod.spec.priority if pod.job is beside.job else pod.job.group.priority


def _lower_for_gang(job: JobInfo, candidates: Sequence[PodInfo], action: str) -> list[PodInfo]:
    return [m for m in candidates if action != "gangpreempt" or m.job.group.priority < job.group.priority]


def _higher(pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
    """Within a queue, no pod is evicted for one of lower priority; between queues, shares decide."""
    queue = pod.job.group.queue
    return [m for m in candidates if m.job.group.queue == queue and _rank(m, pod) > _rank(pod, m)]
