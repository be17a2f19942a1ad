"""What a change of a queue does, in words, for pages, REST and the command line."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from django.utils.translation import gettext as _

from hekla.apps.job_history import labels
from hekla.simulation.queue_shares import LimitLoss, OverCommitment, ShareForecast


class _Losses(NamedTuple):
    """The losses of one queue, as amounts of the same resources."""

    before: dict[str, float]
    after: dict[str, float]
    held: dict[str, float]


def over_commitments(found: Iterable[OverCommitment]) -> list[str]:
    """A warning for each resource of which more is guaranteed than the cluster has."""
    sentence = _("The queues of this cluster are guaranteed %(guaranteed)s in total. The cluster has %(capacity)s.")
    return [
        sentence
        % {
            "guaranteed": labels.exact_amounts({one.resource: one.guaranteed}),
            "capacity": labels.exact_amounts({one.resource: one.capacity}),
        }
        for one in found
    ]


def effects(forecast: ShareForecast) -> list[str]:
    """What queues and pending jobs lose by the change, apart from evictions."""
    return [*_limits(forecast.limit_losses), *_blocked(forecast)]


def _limits(losses: Iterable[LimitLoss]) -> Iterable[str]:
    by_queue: defaultdict[str, _Losses] = defaultdict(lambda: _Losses({}, {}, {}))
    for loss in losses:
        amounts = by_queue[loss.queue]
        amounts.before[loss.resource], amounts.after[loss.resource] = loss.before, loss.after
        if loss.held > loss.after:
            amounts.held[loss.resource] = loss.held
    for queue, amounts in by_queue.items():
        facts = {"queue": queue, "after": labels.exact_amounts(amounts.after)}
        yield _("Queue %(queue)s can use at most %(after)s, instead of %(before)s.") % (
            facts | {"before": labels.exact_amounts(amounts.before)}
        )
        if amounts.held:
            sentence = _("Queue %(queue)s uses %(held)s. Its pods continue, and new ones wait until it uses less.")
            yield sentence % {"queue": queue, "held": labels.exact_amounts(amounts.held)}


def _blocked(forecast: ShareForecast) -> Iterable[str]:
    for job in forecast.blocked:
        yield _("Job %(job)s in queue %(queue)s could never start.") % {"job": job.name, "queue": job.queue.name}
