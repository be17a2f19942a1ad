"""Higher priority first, among jobs and tasks of a job; lower priority may be evicted (`volcano-spec` §5.1)."""

from collections.abc import Sequence

from hekla.engine.gangs import Gang, Member
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs and tasks, and say who is worth less."""
    session.register(Point.JOB_ORDER, option, _jobs, is_lasting=True)
    session.register(Point.TASK_ORDER, option, _tasks)
    session.register(Point.SUBJOB_ORDER, option, lambda left, right: right.priority - left.priority)
    session.register(Point.JOB_STARVING, option, _is_starving, is_lasting=True)
    session.register(Point.PREEMPTABLE, option, _lower, is_lasting=True)
    session.register(Point.EVICTABLE, option, _lower_for_gang, is_lasting=True)
    session.register(Point.SPARED, option, _higher, is_lasting=True)


def _jobs(gang: Gang) -> int:
    return -gang.job.priority


def _tasks(left: Member, right: Member) -> int:
    return right.task.priority - left.task.priority


def _is_starving(gang: Gang) -> bool:
    """Any of its tasks has no place yet."""
    return gang.ready_count + gang.waiting_count < gang.size


def _lower(member: Member, candidates: Sequence[Member]) -> list[Member]:
    return [victim for victim in candidates if _rank(victim, member) < _rank(member, victim)]


def _rank(member: Member, beside: Member) -> int:
    """The priority that counts beside another task: that of the task within one job, else that of the job."""
    return member.task.priority if member.job is beside.job else member.job.job.priority


def _lower_for_gang(gang: Gang, candidates: Sequence[Member], action: str) -> list[Member]:
    return [m for m in candidates if action != "gangpreempt" or m.job.job.priority < gang.job.priority]


def _higher(member: Member, candidates: Sequence[Member]) -> list[Member]:
    """Within a queue nobody is evicted for less than itself; between queues shares decide."""
    queue = member.job.job.queue
    return [m for m in candidates if m.job.job.queue == queue and _rank(m, member) > _rank(member, m)]
