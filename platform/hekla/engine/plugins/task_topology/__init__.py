"""Roles of a job near each other or apart, as it says by annotation (`volcano-spec` §5.6).

Tasks are gathered into buckets of those that want to be together. Buckets are placed one after the other, the largest
first, and a node is liked by how much of the bucket is or could be there.
"""

from collections.abc import Callable

from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.gangs import Member
from hekla.engine.plugins.task_topology.buckets import Bucket, JobBuckets
from hekla.engine.plugins.task_topology.relations import Relations
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_FULL = 100.0


def open_session(session: Session, option: PluginOption) -> None:
    """Order the tasks of the jobs that say how, and score nodes for them."""
    weight, jobs = option.whole("task-topology.weight", 1), _jobs(session)
    if not jobs:
        return

    def bucket_of(member: Member) -> Bucket | None:
        job = jobs.get(member.job.job.uid)
        return job.of.get(member.task.uid) if job else None

    def task_class(member: Member) -> tuple[str, int, str] | None:
        bucket = bucket_of(member)
        return None if bucket is None else (member.job.job.uid, bucket.index, member.task.role)

    def order(left: Member, right: Member) -> int:
        mine, other = _rank(bucket_of(left)), _rank(bucket_of(right))
        if left.job is not right.job or mine[0] != other[0] or mine[0]:
            return mine[0] - other[0]
        relations = jobs[left.job.job.uid].relations
        first, second = (*mine, *_back(relations, right)), (*other, *_back(relations, left))
        return (first > second) - (first < second)

    def scorer(member: Member, _table: NodeTable) -> Callable[[Rows], Vector] | None:
        if bucket_of(member) is None:
            return None
        mine = jobs[member.job.job.uid]
        return lambda rows: mine.scores(member, rows) * weight * _FULL

    def hear(member: Member, row: int, sign: int) -> None:
        if (job := jobs.get(member.job.job.uid)) is not None:
            job.move(member, row, sign)

    session.register(Point.TASK_CLASS, option, task_class)
    session.register(Point.TASK_ORDER, option, order)
    session.register(Point.WIDE_NODE_ORDER, option, scorer)
    session.on_change.append(hear)


def _jobs(session: Session) -> dict[str, JobBuckets]:
    """Of the jobs that say something and still have tasks to place."""
    waiting = {uid: gang for uid, gang in session.gangs.items() if gang.pending()}
    found = {uid: (gang, Relations(gang.job)) for uid, gang in waiting.items()}
    return {
        uid: JobBuckets(gang, relations, session.table, session.dimensions)
        for uid, (gang, relations) in found.items()
        if relations.concern_any
    }


def _rank(bucket: Bucket | None) -> tuple[int, int, int]:
    """Tasks in buckets first, of larger buckets first, of older ones first."""
    return (1, 0, 0) if bucket is None else (0, -bucket.size, bucket.index)


def _back(relations: Relations, member: Member) -> tuple[int, int]:
    return relations.rank(member.task.role)
