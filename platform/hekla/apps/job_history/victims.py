"""Sentences about evictions: why candidates were not evicted for a job, and how an eviction changed shares."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.sentences import together

Phrase = Callable[[int], str]


def spared(facts: Mapping[str, Any]) -> str:
    """Why the candidates were not evicted, in one phrase; empty if there were none."""
    phrases = list(_phrases(facts)) if facts else []
    if not phrases:
        return ""
    if facts["nodes"] < facts["of_nodes"]:
        checked = _("only %(nodes)d of %(of_nodes)d nodes were checked") % facts
        return _("; ").join([*phrases, checked])
    return _("; ").join(phrases)


def _phrases(facts: Mapping[str, Any]) -> Iterator[str]:
    """The plugins that protect pods, the most frequent first, then other reasons."""
    for plugin, count in sorted(facts["spared"].items(), key=lambda item: (-item[1], item[0])):
        phrase = SPARED.get(plugin, _by_another)
        yield phrase(count) % {"n": count, "plugin": plugin}
    for phrase, count in ((_too_little, facts["too_little"]), (_no_victims, facts["in_vain"])):
        if count:
            yield phrase(count) % {"n": count}
    for code, count in sorted(facts["barred"].items()):
        yield BARRED[code](count) % {"n": count}


def describe_shares(facts: Mapping[str, Any]) -> str:
    """How an eviction changed shares, as sentences; empty if unknown or unchanged."""
    return together(map(_describe_share, facts.get("shares", ())))


def _describe_share(shares: Mapping[str, Any]) -> str:
    giver, taker = shares["giver"], shares.get("taker")
    if taker in (None, giver):
        return "" if giver["before"] == giver["after"] else _ALONE[shares["of"]]() % _per_cent(giver, giver)
    return _BOTH[shares["of"]]() % _per_cent(giver, taker)


def _per_cent(giver: Mapping[str, float], taker: Mapping[str, float]) -> dict[str, str]:
    amounts = {"had": giver["before"], "has": giver["after"], "other_had": taker["before"], "other_has": taker["after"]}
    return {name: f"{100 * amount:.0f}" for name, amount in amounts.items()}


_ALONE = {
    "queue": lambda: _("Its queue used %(had)s%% of its deserved share and uses %(has)s%% now."),
    "job": lambda: _("Its job used %(had)s%% of the cluster and uses %(has)s%% now."),
}
_BOTH = {
    "queue": lambda: _(
        "Its queue used %(had)s%% of its deserved share and uses %(has)s%% now. The other queue went from "
        "%(other_had)s%% to %(other_has)s%%."
    ),
    "job": lambda: _(
        "Its job used %(had)s%% of the cluster and uses %(has)s%% now. The other job went from %(other_had)s%% "
        "to %(other_has)s%%."
    ),
}


def _gang(n: int) -> str:
    return ngettext(
        "%(n)d pod belongs to a job at its minimum",
        "%(n)d pods belong to jobs at their minimum",
        n,
    )


def _priority(n: int) -> str:
    return ngettext("%(n)d pod does not have lower priority", "%(n)d pods do not have lower priority", n)


def _conformance(n: int) -> str:
    return ngettext("%(n)d pod is critical for the cluster", "%(n)d pods are critical for the cluster", n)


def _queue_share(n: int) -> str:
    return ngettext(
        "%(n)d pod belongs to a queue within its deserved share",
        "%(n)d pods belong to queues within their deserved share",
        n,
    )


def _job_share(n: int) -> str:
    return ngettext(
        "%(n)d pod belongs to a job that would end up with less than this one",
        "%(n)d pods belong to jobs that would end up with less than this one",
        n,
    )


def _budget(n: int) -> str:
    return ngettext("a disruption budget protects %(n)d pod", "disruption budgets protect %(n)d pods", n)


def _lent(n: int) -> str:
    return ngettext(
        "the rules for lent nodes protect %(n)d pod",
        "the rules for lent nodes protect %(n)d pods",
        n,
    )


def _fresh(n: int) -> str:
    return ngettext("%(n)d pod started recently", "%(n)d pods started recently", n)


def _online(n: int) -> str:
    return ngettext("%(n)d pod is an online workload", "%(n)d pods are online workloads", n)


def _extender(n: int) -> str:
    return ngettext("another program protects %(n)d pod", "another program protects %(n)d pods", n)


def _by_nobodys_leave(n: int) -> str:
    return ngettext(
        "no plugin of the scheduling policy allows evicting %(n)d pod",
        "no plugin of the scheduling policy allows evicting %(n)d pods",
        n,
    )


def _by_another(n: int) -> str:
    return ngettext("plugin “%(plugin)s” protects %(n)d pod", "plugin “%(plugin)s” protects %(n)d pods", n)


def _too_little(n: int) -> str:
    return ngettext("evicting %(n)d pod would free too little", "evicting %(n)d pods would free too little", n)


def _no_victims(n: int) -> str:
    return ngettext(
        "after evicting %(n)d pod the job still could not start",
        "after evicting %(n)d pods the job still could not start",
        n,
    )


def _not_preemptable(n: int) -> str:
    return ngettext("%(n)d pod is not preemptible", "%(n)d pods are not preemptible", n)


def _not_reclaimable(n: int) -> str:
    return ngettext(
        "%(n)d pod belongs to a queue that is not reclaimable",
        "%(n)d pods belong to queues that are not reclaimable",
        n,
    )


def _not_whole(n: int) -> str:
    return ngettext(
        "%(n)d pod could only be evicted with its whole job",
        "%(n)d pods could only be evicted with their whole jobs",
        n,
    )


SPARED: Mapping[str, Phrase] = {
    "": _by_nobodys_leave,
    "capacity": _queue_share,
    "cdp": _fresh,
    "colocation": _online,
    "conformance": _conformance,
    "drf": _job_share,
    "extender": _extender,
    "gang": _gang,
    "pdb": _budget,
    "priority": _priority,
    "proportion": _queue_share,
    "tdm": _lent,
}
"""What it means that this plugin protects a pod; custom plugins are shown by name."""
BARRED: Mapping[str, Phrase] = {
    "gang_not_whole": _not_whole,
    "not_less_urgent": _priority,
    "not_preemptable": _not_preemptable,
    "queue_not_reclaimable": _not_reclaimable,
}
