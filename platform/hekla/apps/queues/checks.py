"""Checks that the settings of queues are consistent."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.queues import selectors
from hekla.apps.queues.models import Queue
from hekla.domain import queue_settings
from hekla.domain.errors import Invalid, Problem
from hekla.domain.resources import Resources

_LEAST_FIRST = ("guarantee", "deserved", "capability")
_MAX_NAMES = 12
"""How many known resources a message lists."""


def require(queue: Queue, *, allow_unknown_resources: bool = False) -> None:
    """Raises Invalid with all contradictions in a queue's settings.

    A resource that nothing in the cluster has is refused as a mistake, for example `gpu` for `nvidia.com/gpu`: its
    limit would have no effect, unnoticed.
    """
    amounts = {name: getattr(queue, name) for name in _LEAST_FIRST}
    problems = [*_amounts(amounts), *_parent(queue), *queue_settings.problems(queue.settings), *_hierarchy(queue)]
    if not allow_unknown_resources:
        problems += _unknown_resources(queue, amounts)
    if problems:
        raise Invalid(problems)


def require_members(queues: Sequence[Queue]) -> None:
    """Raises Invalid if these queues cannot form a federated queue.

    It needs at least two clusters, with one queue in each, so that a job has one choice per cluster. Real and simulated
    clusters cannot be combined.
    """
    clusters = [queue.cluster for queue in queues]
    if len(clusters) < 2:  # noqa: PLR2004
        raise Invalid([Problem("members", _("Choose queues of at least two clusters."))])
    if twice := sorted(name for name, count in Counter(map(str, clusters)).items() if count > 1):
        raise Invalid([Problem("members", _("Choose one queue per cluster. %s has more than one.") % twice[0])])
    if len({cluster.is_simulated for cluster in clusters}) > 1:
        sentence = _("Real and simulated clusters cannot be combined.")
        raise Invalid([Problem("members", sentence)])


def _amounts(amounts: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Problems unless guarantee ≤ deserved ≤ capability, for each pair of amounts that are given."""
    for less, more in combinations(_LEAST_FIRST, 2):
        small, large = Resources.parse(amounts[less]), Resources.parse(amounts[more])
        for name in sorted(amounts[less].keys() & amounts[more].keys()):
            if small.amount(name) > large.amount(name):
                limit = getattr(Queue, more).field.verbose_name
                yield Problem(less, _("%(name)s: more than %(more)s.") % {"name": name, "more": limit})


def _unknown_resources(queue: Queue, amounts: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """A problem for each field with a resource that is unknown in the queue's cluster."""
    named = {name for quantities in amounts.values() for name in quantities}
    if not (unknown := selectors.unknown_resources(queue.cluster, named)):
        return
    known = sorted(selectors.resources_of_nodes(queue.cluster))[:_MAX_NAMES]
    for field, quantities in amounts.items():
        if wrong := sorted(unknown & quantities.keys()):
            sentence = _(
                "Unknown resource “%(name)s”. Cluster %(cluster)s has: %(names)s. If nodes get it later, allow unknown "
                "resources."
            )
            facts = {"name": wrong[0][:63], "cluster": queue.cluster, "names": _(", ").join(known)}
            yield Problem(field, sentence % facts)


def _parent(queue: Queue) -> Iterator[Problem]:
    """Problems unless the parent is another queue of the cluster, and not a descendant."""
    above = queue.parent
    if above is not None and above.cluster_id != queue.cluster_id:
        yield Problem("parent", _("This queue is in another cluster."))
    while above is not None:
        if above.name == queue.name:
            yield Problem("parent", _("A queue cannot be its own parent."))
            return
        above = above.parent


def _hierarchy(queue: Queue) -> Iterator[Problem]:
    """A problem if its path leads to that of another queue of the cluster, or the other way round: jobs are leaves."""
    if not queue.hierarchy:
        return
    for other in selectors.with_hierarchy(queue.cluster).exclude(name=queue.name):
        first, second = sorted((queue.hierarchy, other.hierarchy), key=len)
        if queue_settings.is_above(first, second):
            sentence = _("Queue %(queue)s has the path %(path)s. No path can be a part of another.")
            yield Problem("hierarchy", sentence % {"queue": other.name, "path": other.hierarchy})
            return
