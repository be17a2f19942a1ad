"""Cooldown: a pod that has just been given its node stays there for a while (`volcano-spec` §5.4).

The pod says for how long, as label or annotation `volcano.sh/cooldown-time`; a text that is no duration protects
nothing.
"""

from collections.abc import Sequence

from hekla.engine.durations import seconds
from hekla.engine.gangs import Member
from hekla.engine.model import TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_COOLDOWN = "volcano.sh/cooldown-time"


def open_session(session: Session, option: PluginOption) -> None:
    """Name those whose time is over, and spare the others."""

    def is_fresh(member: Member) -> bool:
        task = member.task
        cooldown = seconds(task.labels.get(_COOLDOWN) or task.annotations.get(_COOLDOWN, ""))
        return bool(
            cooldown
            and member.status is TaskStatus.RUNNING
            and task.scheduled_at
            and task.scheduled_at + cooldown > session.now
        )

    def others(_member: Member | None, candidates: Sequence[Member]) -> list[Member]:
        return [member for member in candidates if not is_fresh(member)]

    session.register(Point.PREEMPTABLE, option, others, is_lasting=True)
    session.register(Point.RECLAIMABLE, option, others, is_lasting=True)
    session.register(
        Point.EVICTABLE, option, lambda _gang, candidates, _action: others(None, candidates), is_lasting=True
    )
    session.register(
        Point.SPARED, option, lambda _member, candidates: [m for m in candidates if is_fresh(m)], is_lasting=True
    )
