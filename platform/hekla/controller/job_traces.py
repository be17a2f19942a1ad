"""The part of the controller in the traces of jobs: the round that bound their pods, and each bind.

A trace begins with the request that submitted or resumed the job. Its context is stored with the event of that.
"""

import time
from collections.abc import Sequence

from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs.services.decisions import JobDecision
from hekla.lib import tracing
from hekla.scheduling.snapshot import Snapshot

MOST_JOBS, MOST_PODS = 100, 50
"""Of one round, and of one job: further ones are in no trace."""


def note_round(
    cluster: Cluster, snapshot: Snapshot, found: Sequence[JobDecision], *, begin: int, engine_seconds: float
) -> None:
    """Add a round that just ended to the traces of the jobs whose pods it bound.

    `begin`: in nanoseconds since 1970; `engine_seconds`: how long the engine took.
    """
    if not tracing.is_on():
        return
    end = time.time_ns()
    jobs = {one.job_id: snapshot.jobs.get(str(one.job_id)) for one in found if one.binds}
    bound = [(one, job) for one in found if (job := jobs.get(one.job_id)) is not None][:MOST_JOBS]
    traces = event_log.traces_of([f"job:{job.uid}" for _one, job in bound]) if bound else {}
    for one, job in bound:
        about: dict[str, str | float] = {
            "hekla.cluster": cluster.name,
            "hekla.job": str(job.uid),
            "hekla.engine_seconds": engine_seconds,
        }
        parent = traces.get(f"job:{job.uid}", "")
        around = tracing.emit("controller round", about, parent=parent, begin=begin, end=end)
        for pod, node in list(one.binds.items())[:MOST_PODS]:
            of_pod: dict[str, str | int] = {"hekla.pod": pod, "hekla.node": node, "hekla.job": str(job.uid)}
            tracing.emit("bind pod", of_pod, parent=around, begin=begin, end=end)
