"""What readers of logs, and people with sessions, leave about the pods that run at the end of the simulated day."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction

from hekla.apps.idleness.models import SessionMinute
from hekla.apps.job_metrics.models import MetricLog
from hekla.apps.jobs.models import Pod
from hekla.apps.workbench import services as workbench
from hekla.domain.phases import PodPhase
from hekla.domain.stalls import MetricProgress
from hekla.domain.tools import Tool

_MOST_SESSIONS, _MOST_OF_PERSON = 400, 8
_EVERY_JOB, _EVERY_STALLED = 2, 20
_PORT = 8888
_USED_MINUTES, _PAUSES = 20, 60
"""How many minutes a session was used, and how long ago at most."""


@transaction.atomic
def add(*, now: datetime) -> None:
    """Add what was read of the log of each running pod, and a session with a port of every second job."""
    running = Pod.objects.filter(phase=PodPhase.RUNNING, stopping=False, started_at__lt=now)
    pods = list(running.select_related("job__owner").order_by("pk"))
    MetricLog.objects.bulk_create((_log(pod, place, now) for place, pod in enumerate(pods)), batch_size=1000)
    SessionMinute.objects.bulk_create(_sessions(pods, now), batch_size=2000)


def _log(pod: Pod, place: int, now: datetime) -> MetricLog:
    """One that grew a moment ago, with a metric; some pods stalled an hour ago, if they ran by then."""
    seconds = (now - (pod.started_at or now)).total_seconds()
    quiet = min(3600.0, seconds / 2) if place % _EVERY_STALLED == 0 else 5.0
    read = max(seconds - quiet, 0.0)
    progress = MetricProgress("loss", count=int(read) // 10, step=read // 10, seconds=read, longest=12.0, pace=0.1)
    return MetricLog(
        pod=pod,
        job_id=pod.job_id,
        size=int(read) * 80,
        offset=int(read) * 80,
        known_at=now,
        grew_at=now - timedelta(seconds=quiet),
        growths=int(read) // 10,
        longest_pause=12,
        progress=progress.document(),
        read_at=now,
        due_at=now + timedelta(seconds=30),
    )


def _sessions(pods: list[Pod], now: datetime) -> Iterator[SessionMinute]:
    """Open the sessions, and yield the minutes in which each was used."""
    first_pods = list({pod.job_id: pod for pod in reversed(pods)}.values())[::_EVERY_JOB]
    of_person = Counter[int]()
    for place, pod in enumerate(first_pods[:_MOST_SESSIONS]):
        of_person[pod.job.owner_id] += 1
        if of_person[pod.job.owner_id] > _MOST_OF_PERSON:
            continue
        opened = pod.started_at or now
        session, _is_new = workbench.open_session(pod.pk, Tool.PORT, _PORT, user=pod.job.owner, now=opened)
        last = now.replace(second=0, microsecond=0) - timedelta(minutes=place % _PAUSES)
        for minutes in range(_USED_MINUTES):
            yield SessionMinute(session=session, at=last - timedelta(minutes=minutes), requests=3, input=1)
