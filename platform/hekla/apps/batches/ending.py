"""The end of a batch: noticed once all of its jobs have ended, recorded, and told to the owners of the jobs."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.event_log.services import PLATFORM, record, unit_of_work
from hekla.apps.job_metrics.ranking import Run, best_run, ranking
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.services import tell_of_batch
from hekla.domain import events
from hekla.domain.phases import FINAL_JOB_PHASES, JobPhase

_FINAL = [phase.value for phase in FINAL_JOB_PHASES]
_MOST = 20
_MOST_PEOPLE = 50


def end_batches(*, now: datetime) -> int:
    """End the batches whose jobs have all ended, and open those again that have new ones. Returns how many ended.

    At most 20 in one call.
    """
    unfinished = BatchJob.objects.exclude(job__phase__in=_FINAL).values("batch_id")
    Batch.objects.filter(ended_at__isnull=False, pk__in=unfinished).update(ended_at=None)
    return sum(_end(batch, now) for batch in selectors.to_end(now=now, limit=_MOST))


def _end(batch: Batch, now: datetime) -> bool:
    with unit_of_work():
        if not Batch.objects.filter(pk=batch.pk, ended_at=None).update(ended_at=now):
            return False  # another worker was faster
        runs = selectors.runs(batch)
        facts = _facts(runs)
        record(
            events.BatchEnded(name=batch.name, **facts),
            subject=f"batch:{batch.uid}",
            tenant=batch.tenant_id,
            actor=PLATFORM,
            at=now,
        )
        tell_of_batch(
            _people(runs),
            _moments(runs),
            key=f"batch:{batch.uid}:{now.isoformat()}",
            tenant=batch.tenant,
            facts={"batch": str(batch.uid), "batch_name": batch.name, **facts},
            now=now,
        )
    return True


def _facts(runs: Sequence[Run]) -> dict[str, Any]:
    """How many jobs completed, failed and were stopped, and the best run by the usual ranking."""
    counts = Counter(run.job.phase for run in runs)
    order = ranking(runs)
    best = best_run(runs, order)
    facts: dict[str, Any] = {
        "completed": counts[JobPhase.COMPLETED.value],
        "failed": sum(counts[phase] for phase in selectors.FAILED),
        "stopped": counts[JobPhase.ABORTED.value],
    }
    if best and order:
        facts |= {"best": best.job.name, "metric": order.metric, "value": best.value(order.metric, order.value)}
    return facts


def _moments(runs: Sequence[Run]) -> set[Moment]:
    """Which notifications of single jobs this one replaces."""
    phases = {run.job.phase for run in runs}
    return {Moment.FAILED if phase == JobPhase.FAILED else Moment.ENDED for phase in phases}


def _people(runs: Sequence[Run]) -> list[User]:
    """The owners of the jobs: those who retried some of them own the new ones."""
    owners = dict.fromkeys(run.job.owner_id for run in runs)
    found = User.objects.in_bulk(list(owners)[:_MOST_PEOPLE])
    return list(found.values())
