"""Sentences about evictions: whom nobody evicted for a job, and how shares moved when somebody was."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.sentences import together

Phrase = Callable[[int], str]


def spared(facts: Mapping[str, Any]) -> str:
    """Who was considered and what spared them, in one phrase; nothing where there was nobody."""
    phrases = list(_phrases(facts)) if facts else []
    if not phrases:
        return ""
    if facts["nodes"] < facts["of_nodes"]:
        seen = _("only %(nodes)d of %(of_nodes)d nodes were looked at") % facts
        return _("; ").join([*phrases, seen])
    return _("; ").join(phrases)


def _phrases(facts: Mapping[str, Any]) -> Iterator[str]:
    """The most frequent first, then what no plugin is the cause of."""
    for plugin, count in sorted(facts["spared"].items(), key=lambda item: (-item[1], item[0])):
        phrase = SPARED.get(plugin, _by_another)
        yield phrase(count) % {"n": count, "plugin": plugin}
    for phrase, count in ((_too_little, facts["too_little"]), (_in_vain, facts["in_vain"])):
        if count:
            yield phrase(count) % {"n": count}
    for code, count in sorted(facts["barred"].items()):
        yield BARRED[code](count) % {"n": count}


def moved(facts: Mapping[str, Any]) -> str:
    """What an eviction did to shares, as sentences; nothing where none are known or none moved."""
    return together(map(_moved, facts.get("shares", ())))


def _moved(shares: Mapping[str, Any]) -> str:
    giver, taker = shares["giver"], shares.get("taker")
    if taker in (None, giver):
        return "" if giver["before"] == giver["after"] else _ALONE[shares["of"]]() % _per_cent(giver, giver)
    return _BOTH[shares["of"]]() % _per_cent(giver, taker)


def _per_cent(giver: Mapping[str, float], taker: Mapping[str, float]) -> dict[str, str]:
    amounts = {"had": giver["before"], "has": giver["after"], "other_had": taker["before"], "other_has": taker["after"]}
    return {name: f"{100 * amount:.0f}" for name, amount in amounts.items()}


_ALONE = {
    "queue": lambda: _("Its queue held %(had)s%% of what it deserves and holds %(has)s%% now."),
    "job": lambda: _("Its job held %(had)s%% of the cluster and holds %(has)s%% now."),
}
_BOTH = {
    "queue": lambda: _(
        "Its queue held %(had)s%% of what it deserves and holds %(has)s%% now; the other queue %(other_had)s%%, and"
        " %(other_has)s%% now."
    ),
    "job": lambda: _(
        "Its job held %(had)s%% of the cluster and holds %(has)s%% now; the other job %(other_had)s%%, and"
        " %(other_has)s%% now."
    ),
}


def _gang(n: int) -> str:
    return ngettext(
        "%(n)d pod is of a job that is no larger than its minimum",
        "%(n)d pods are of jobs that are no larger than their minimum",
        n,
    )


def _priority(n: int) -> str:
    return ngettext("%(n)d pod is not less urgent", "%(n)d pods are not less urgent", n)


def _conformance(n: int) -> str:
    return ngettext("the cluster itself needs %(n)d pod", "the cluster itself needs %(n)d pods", n)


def _queue_share(n: int) -> str:
    return ngettext(
        "%(n)d pod is of a queue that holds no more than it deserves",
        "%(n)d pods are of queues that hold no more than they deserve",
        n,
    )


def _job_share(n: int) -> str:
    return ngettext(
        "%(n)d pod is of a job that would then hold less than this one",
        "%(n)d pods are of jobs that would then hold less than this one",
        n,
    )


def _budget(n: int) -> str:
    return ngettext("a disruption budget protects %(n)d pod", "disruption budgets protect %(n)d pods", n)


def _lent(n: int) -> str:
    return ngettext(
        "the rules for lent nodes keep %(n)d pod where it is",
        "the rules for lent nodes keep %(n)d pods where they are",
        n,
    )


def _fresh(n: int) -> str:
    return ngettext("%(n)d pod was placed only a short while ago", "%(n)d pods were placed only a short while ago", n)


def _online(n: int) -> str:
    return ngettext("%(n)d pod is online work", "%(n)d pods are online work", n)


def _extender(n: int) -> str:
    return ngettext("another program keeps %(n)d pod", "another program keeps %(n)d pods", n)


def _by_nobodys_leave(n: int) -> str:
    return ngettext(
        "nothing in the scheduling policy lets %(n)d pod go", "nothing in the scheduling policy lets %(n)d pods go", n
    )


def _by_another(n: int) -> str:
    return ngettext("“%(plugin)s” keeps %(n)d pod", "“%(plugin)s” keeps %(n)d pods", n)


def _too_little(n: int) -> str:
    return ngettext("%(n)d pod would leave too little room", "%(n)d pods would leave too little room", n)


def _in_vain(n: int) -> str:
    return ngettext(
        "%(n)d pod could go, and still the job could not start",
        "%(n)d pods could go, and still the job could not start",
        n,
    )


def _not_preemptable(n: int) -> str:
    return ngettext("%(n)d pod must never be evicted", "%(n)d pods must never be evicted", n)


def _not_reclaimable(n: int) -> str:
    return ngettext(
        "%(n)d pod is of a queue that gives nothing back", "%(n)d pods are of queues that give nothing back", n
    )


def _not_whole(n: int) -> str:
    return ngettext("%(n)d pod could go only with all of its job", "%(n)d pods could go only with all of their jobs", n)


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
"""What a plugin's sparing means; one of somebody's own is named."""
BARRED: Mapping[str, Phrase] = {
    "gang_not_whole": _not_whole,
    "not_less_urgent": _priority,
    "not_preemptable": _not_preemptable,
    "queue_not_reclaimable": _not_reclaimable,
}
