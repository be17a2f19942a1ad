"""No job waits forever: a job past its waiting time is admitted and kept pipelined (`volcano-spec` §5.4).

The waiting time is the annotation `sla-waiting-time` of the job, else the argument of that name. An invalid or zero
time counts as not set.
"""

import math

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import JobInfo
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.lib.durations import seconds

_NAME = "sla-waiting-time"

READS_CLOCK = True
NEEDS = (
    Need(
        Input.JOB_ANNOTATIONS,
        Lack.FALLBACK,
        gettext_noop("The waiting time in its arguments applies to all jobs."),
        lambda option, _policy: _general(option) is not None,
    ),
    Need(Input.JOB_ANNOTATIONS, Lack.NOTHING, when=lambda option, _policy: _general(option) is None),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs by deadline, and permit jobs past their deadline."""
    general = _general(option)

    def deadline(job: JobInfo) -> float:
        annotations = job.group.annotations
        wait = _positive(annotations.get(f"volcano.sh/{_NAME}") or annotations.get(_NAME, "")) or general
        return job.group.created_at + wait if wait else math.inf

    def has_waited(job: JobInfo) -> Vote:
        return Vote.PERMIT if deadline(job) <= session.now else Vote.ABSTAIN

    session.register(ExtensionPoint.JOB_ORDER, option, deadline)
    session.register(ExtensionPoint.JOB_ENQUEUEABLE, option, has_waited)
    session.register(ExtensionPoint.JOB_PIPELINED, option, has_waited)


def _general(option: PluginOption) -> float | None:
    """The waiting time of jobs without the annotation."""
    return _positive(str(option.arguments.get(_NAME, "")))


def _positive(text: str) -> float | None:
    return seconds(text) or None
