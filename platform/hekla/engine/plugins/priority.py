"""Higher priority first, among jobs and among the tasks of a job (`volcano-spec` §5.1)."""

from hekla.engine.gangs import Gang, Member
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs and tasks."""
    session.register(Point.JOB_ORDER, option, _jobs)
    session.register(Point.TASK_ORDER, option, _tasks)


def _jobs(left: Gang, right: Gang) -> int:
    return right.job.priority - left.job.priority


def _tasks(left: Member, right: Member) -> int:
    return right.task.priority - left.task.priority
