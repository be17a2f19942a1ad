"""Places roles of a job together or apart, by the job's annotations (`volcano-spec` §5.6).

Pods with affinity to each other are gathered into buckets. Buckets are placed one after the other, the largest first. A
node scores higher, the more pods of the bucket are or could be there.
"""

from collections.abc import Callable

from hekla.domain.scheduling_inputs import Input
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.plugins.task_topology.buckets import Bucket, JobBuckets
from hekla.engine.plugins.task_topology.relations import Relations
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_FULL = 100.0

NEEDS = (Need(Input.JOB_ANNOTATIONS, Lack.NOTHING),)


def open_session(session: Session, option: PluginOption) -> None:
    """Order the pods of jobs with these annotations, and score nodes for them."""
    weight, buckets_by_job = option.whole("task-topology.weight", 1), _jobs(session)
    if not buckets_by_job:
        return

    def bucket_of(pod: PodInfo) -> Bucket | None:
        buckets = buckets_by_job.get(pod.job.group.uid)
        return buckets.of.get(pod.spec.uid) if buckets else None

    def task_class(pod: PodInfo) -> tuple[str, int, str] | None:
        bucket = bucket_of(pod)
        return None if bucket is None else (pod.job.group.uid, bucket.index, pod.spec.role)

    def order(left: PodInfo, right: PodInfo) -> int:
        mine, other = _rank(bucket_of(left)), _rank(bucket_of(right))
        if left.job is not right.job or mine[0] != other[0] or mine[0]:
            return mine[0] - other[0]
        relations = buckets_by_job[left.job.group.uid].relations
        first, second = (*mine, *_back(relations, right)), (*other, *_back(relations, left))
        return (first > second) - (first < second)

    def scorer(pod: PodInfo, _table: NodeTable) -> Callable[[Rows], Vector] | None:
        if bucket_of(pod) is None:
            return None
        mine = buckets_by_job[pod.job.group.uid]
        return lambda rows: mine.scores(pod, rows) * weight * _FULL

    def update(pod: PodInfo, row: int, sign: int) -> None:
        if (buckets := buckets_by_job.get(pod.job.group.uid)) is not None:
            buckets.move(pod, row, sign)

    session.register(ExtensionPoint.TASK_CLASS, option, task_class)
    session.register(ExtensionPoint.TASK_ORDER, option, order)
    session.register(ExtensionPoint.WIDE_NODE_ORDER, option, scorer)
    session.on_change.append(update)


def _jobs(session: Session) -> dict[str, JobBuckets]:
    """The buckets of jobs that have such annotations and pods to place, by uid."""
    waiting = {uid: job for uid, job in session.jobs.items() if job.pending()}
    found = {uid: (job, Relations(job.group)) for uid, job in waiting.items()}
    return {
        uid: JobBuckets(job, relations, session.table, session.dimensions)
        for uid, (job, relations) in found.items()
        if relations.concern_any
    }


def _rank(bucket: Bucket | None) -> tuple[int, int, int]:
    """The sort key: pods in buckets first, then larger buckets, then older ones."""
    return (1, 0, 0) if bucket is None else (0, -bucket.size, bucket.index)


def _back(relations: Relations, pod: PodInfo) -> tuple[int, int]:
    return relations.rank(pod.spec.role)
