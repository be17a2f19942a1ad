"""What people should know about the settings of a queue in its cluster: those without effect, and likely mistakes."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.domain import queue_settings
from hekla.domain.card_resources import is_card, model_of
from hekla.domain.errors import Invalid
from hekla.engine.policy import PluginOption, SchedulerPolicy
from hekla.scheduling import policies

_MAX_NAMES = 12
"""How many names a sentence lists."""


def warnings(queue: Queue, policy: SchedulerPolicy | None = None) -> list[str]:
    """One sentence for each. The queue may be unsaved. `policy`: that of its cluster, if already read."""
    found = [*_unknown_groups(queue), *_unknown_models(queue), *_other_weights(queue)]
    return [*found, *_without_effect(queue, policy)]


def _unknown_groups(queue: Queue) -> Iterator[str]:
    named = {group for field in queue_settings.AFFINITY for group in getattr(queue, field)} | {*queue.node_group_limits}
    unknown = sorted(named - clusters.label_values(queue.cluster, queue_settings.GROUP_LABEL)) if named else []
    if unknown:
        sentence = ngettext(
            "No node of cluster %(cluster)s is in node group %(names)s (label %(label)s).",
            "No node of cluster %(cluster)s is in node groups %(names)s (label %(label)s).",
            len(unknown),
        )
        names = _(", ").join(unknown[:_MAX_NAMES])
        yield sentence % {"cluster": queue.cluster, "names": names, "label": queue_settings.GROUP_LABEL}


def _unknown_models(queue: Queue) -> Iterator[str]:
    known = card_models(queue.cluster) if queue.card_quota else set()
    if unknown := sorted(queue.card_quota.keys() - known):
        sentence = ngettext(
            "No node of cluster %(cluster)s has cards of the model %(names)s. It has: %(known)s.",
            "No node of cluster %(cluster)s has cards of the models %(names)s. It has: %(known)s.",
            len(unknown),
        )
        facts = {"names": _(", ").join(unknown[:_MAX_NAMES]), "known": _(", ").join(sorted(known)[:_MAX_NAMES]) or "–"}
        yield sentence % {"cluster": queue.cluster, **facts}


def card_models(cluster: Cluster) -> set[str]:
    """The models of the cards of the cluster's nodes."""
    nodes = clusters.nodes_of(cluster).values_list("allocatable", "labels")
    return {model_of(name, labels) for amounts, labels in nodes for name in filter(is_card, amounts)}


def _other_weights(queue: Queue) -> Iterator[str]:
    """A branch of the hierarchy to which another queue gives another weight: the scheduler uses one of them."""
    own = queue_settings.branch_weights(queue.hierarchy, queue.hierarchy_weights)
    for other in queues.with_hierarchy(queue.cluster) if own else ():
        theirs = queue_settings.branch_weights(other.hierarchy, other.hierarchy_weights)
        branch = next((path for path, weight in own.items() if theirs.get(path, weight) != weight), None)
        if branch and other.name != queue.name:
            sentence = _(
                "Queue %(queue)s gives %(path)s another weight: %(weight)g. The scheduler uses one of the two."
            )
            yield sentence % {"queue": other.name, "path": branch, "weight": theirs[branch]}
            return


def _without_effect(queue: Queue, policy: SchedulerPolicy | None) -> Iterator[str]:
    if queue.cluster.leads_jobs:
        if queue.job_order:
            yield _("Volcano schedules this cluster, so the job order of the queue has no effect.")
        return
    sentence = _("%(settings)s: no effect, because the policy of cluster %(cluster)s does not use %(plugin)s.")
    plugins = _plugins(queue, policy)
    if plugins is None:
        return
    if (queue.has_node_groups or queue.node_group_limits) and "nodegroup" not in {one.name for one in plugins}:
        yield sentence % {"settings": _("Node groups"), "cluster": queue.cluster, "plugin": "nodegroup"}
    if queue.card_quota and "capacity-card" not in {one.name for one in plugins}:
        yield sentence % {"settings": _("Card limits"), "cluster": queue.cluster, "plugin": "capacity-card"}
    if queue.hierarchy and not any(one.name == "drf" and one.has("enableHierarchy") for one in plugins):
        yield sentence % {"settings": _("Hierarchy"), "cluster": queue.cluster, "plugin": "drf (enableHierarchy: true)"}


def _plugins(queue: Queue, policy: SchedulerPolicy | None) -> list[PluginOption] | None:
    """The plugins of the policy in force; None if it is not valid, which its own page says."""
    try:
        return [option for tier in (policy or policies.in_force(queue.cluster)).tiers for option in tier]
    except Invalid:
        return None
