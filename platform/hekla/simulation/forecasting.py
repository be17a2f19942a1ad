"""Records predicted starts of waiting jobs, to compare them with what happens."""

from hekla.apps.clusters.models import Cluster
from hekla.apps.forecasts import selectors, services
from hekla.apps.jobs import selectors as jobs
from hekla.domain.phases import JobPhase
from hekla.simulation import eta
from hekla.simulation.snapshot_cache import Outlook, looking_at

_MOST = 200
"""How many jobs are predicted at a time."""


def record(cluster: Cluster) -> int:
    """Predict the start of each waiting job without a prediction. Returns the number of jobs."""
    if cluster.leads_jobs or not jobs.any_waiting(cluster.pk):
        return 0
    with looking_at(cluster, is_long=True) as outlook:
        fresh = _fresh(outlook)
        if not fresh:
            return 0
        found = eta.ranges(outlook.simulator, fresh, outlook.run_times, outlook.now)
    intervals = {int(uid): (found[uid].earliest, found[uid].latest) if uid in found else None for uid in fresh}
    services.keep(intervals, now=outlook.now)
    return len(intervals)


def _fresh(outlook: Outlook) -> list[str]:
    """The waiting jobs without a recorded prediction."""
    rows = outlook.snapshot.jobs.items()
    waiting = [uid for uid, row in rows if row.waiting and row.phase == JobPhase.PENDING and row.started_at is None]
    known = selectors.known([int(uid) for uid in waiting])
    return [uid for uid in waiting if int(uid) not in known][:_MOST]
