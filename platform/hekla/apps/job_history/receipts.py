"""Receipts of evictions, for both jobs: who was evicted for whom, by which rule, how shares changed, what was lost.

Evictions decided together share one receipt. It does not name a job of another tenant, nor its pods.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import labels, victims
from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.card_resources import card_counts
from hekla.domain.phases import PodPhase
from hekla.domain.queue_settings import JobOrder
from hekla.domain.resources import Resources

MOST = 20
Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Receipt:
    """One decision. `gave`: the job's own pods were evicted; else other pods were evicted for it.

    `pods`, `other` and the losses are empty if they belong to another tenant. `lost_seconds`: the longest run time of
    the evicted pods; `lost_gpu_seconds`: run time times cards of all of them. `returned`: how many of the replicas have
    a node again; None if that no longer matters.
    """

    number: int
    at: datetime
    gave: bool
    count: int
    action: str
    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    shares: tuple[Mapping[str, Any], ...]
    is_for_job: bool
    other: str = ""
    other_uid: str = ""
    pods: tuple[str, ...] = ()
    held: Resources = field(default_factory=Resources)
    lost_seconds: float | None = None
    lost_gpu_seconds: float | None = None
    returned: int | None = None

    @property
    def sentence(self) -> str:
        """Who was evicted for whom."""
        facts = {"n": self.count, "other": self.other, "nodes": _(", ").join(self.nodes)}
        return (_gave if self.gave else _gained)(self)(self.count) % facts

    @property
    def rule(self) -> str:
        """The action of the scheduler, and the plugins that allowed it."""
        rule = _RULES.get(self.action, lambda: self.action)()
        if self.action == "shuffle" and "colocation" in self.plugins:
            rule = _("Co-location: online work needs the node")
        if not self.plugins:
            return _("%(rule)s (%(action)s)") % {"rule": rule, "action": self.action}
        return _("%(rule)s (%(action)s, allowed by %(plugins)s)") % {
            "rule": rule, "action": self.action, "plugins": _(", ").join(self.plugins)
        }  # fmt: skip

    @property
    def share_change(self) -> str:
        """How shares changed, from the job's point of view."""
        return victims.describe_shares({"shares": [_visible_shares(self.gave, shares) for shares in self.shares]})

    @property
    def lost(self) -> str:
        """How long the pods had run since their start; empty if the reader may not know it."""
        return "" if self.lost_seconds is None else lost_work(self.lost_seconds, self.lost_gpu_seconds or 0.0)

    @property
    def now(self) -> str:
        """The current state of the evicted replicas."""
        if self.returned is None:
            return ""
        waiting = self.count - self.returned
        if not waiting:
            return ngettext("It is running again.", "All of them are running again.", self.count)
        facts = {"n": waiting, "of": self.count}
        return ngettext("%(n)d of %(of)d is pending now.", "%(n)d of %(of)d are pending now.", waiting) % facts


def lost_work(longest: float, on_cards: float) -> str:
    """What pods that stop lose: the longest run time of one, and the run time times cards of all, in seconds."""
    text = _("Up to %(long)s of work since the start") % {"long": labels.duration(longest)}
    if on_cards:
        text += _(", %(long)s on all of their cards together") % {"long": labels.duration(on_cards)}
    return _("%s. Saved checkpoints are not lost.") % text


def made_room_for(job: Job) -> list[Receipt]:
    """Evictions of the job's own pods, newest first; at most `MOST`."""
    events = selectors.evictions_of(job)
    pods = _by_key(selectors.attempts(job, {(e.payload["task"], e.payload["index"]) for e in events}))
    return [_receipt(job, group, pods) for group in _grouped(events)]


def gained(job: Job) -> list[Receipt]:
    """Evictions of other pods for the job, newest first; at most `MOST`."""
    events = selectors.evictions_for(job)
    known = {f"job:{other.uid}": other for other in selectors.of_tenant(job.tenant_id, _uids(events, job))}
    return [_gained_from(known.get(group[0].subject), group) for group in _grouped(events)]


def queue_position(job: Job, receipts: Iterable[Receipt]) -> str:
    """How many jobs of its queue come before an evicted job now.

    Empty if no evicted replica waits, or the queue's order does not follow from the rows.
    """
    if job.queue.job_order in (JobOrder.FAIR, JobOrder.SLA) or not any(
        receipt.returned is not None and receipt.returned < receipt.count for receipt in receipts
    ):
        return ""
    ahead = selectors.ahead_of(job)
    if job.queue.job_order == JobOrder.FIFO:
        sentence = ngettext(
            "%(n)d pending job of queue %(queue)s came first.",
            "%(n)d pending jobs of queue %(queue)s came first.",
            ahead,
        )
    else:
        sentence = ngettext(
            "%(n)d pending job of queue %(queue)s had higher priority or came first.",
            "%(n)d pending jobs of queue %(queue)s had higher priority or came first.",
            ahead,
        )
    return sentence % {"queue": job.queue.name, "n": ahead}


def _uids(events: Iterable[LoggedEvent], job: Job) -> set[str]:
    """The uids of evicted jobs of the job's own tenant."""
    return {event.subject.removeprefix("job:") for event in events if event.tenant_id == job.tenant_id}


def _grouped(events: Sequence[LoggedEvent]) -> list[list[LoggedEvent]]:
    """The evictions by decision: same time, evicted job, gaining job and action."""
    together = groupby(events, key=lambda e: (e.at, e.subject, e.payload["action"], e.payload["for_job"]))
    return [list(group)[::-1] for _key, group in together][:MOST]


def _facts(group: Sequence[LoggedEvent]) -> dict[str, Any]:
    first = group[0].payload
    return {
        "number": group[0].pk,
        "at": group[0].at,
        "count": len(group),
        "action": first["action"],
        "plugins": tuple(first.get("plugins", ())),
        "nodes": tuple(dict.fromkeys(event.payload["node"] for event in group if event.payload["node"])),
        "shares": tuple(first.get("shares", ())),
        "is_for_job": bool(first["for_job"]),
    }


def _receipt(job: Job, group: Sequence[LoggedEvent], pods: Mapping[Key, Pod]) -> Receipt:
    first, last = group[0].payload, {(task, index): pod for (task, index, _attempt), pod in pods.items()}
    longest, on_cards = _lost(job, group, pods)
    placed = [last.get((e.payload["task"], e.payload["index"])) for e in group]
    return Receipt(
        gave=True,
        other=first["for_name"],
        other_uid=first["for_job"] if first["for_name"] else "",
        pods=_names(group),
        held=_held(job, group),
        returned=None if job.is_final else sum(map(_has_place, placed)),
        lost_seconds=longest,
        lost_gpu_seconds=on_cards,
        **_facts(group),
    )


def _has_place(pod: Pod | None) -> bool:
    return pod is not None and pod.phase != PodPhase.PENDING and not pod.evicted


def _gained_from(giver: Job | None, group: Sequence[LoggedEvent]) -> Receipt:
    if giver is None:
        return Receipt(gave=False, **_facts(group))
    held, pods = _held(giver, group), _names(group)
    return Receipt(gave=False, other=giver.name, other_uid=str(giver.uid), held=held, pods=pods, **_facts(group))


def _names(group: Sequence[LoggedEvent]) -> tuple[str, ...]:
    return tuple(f"{event.payload['task']}-{event.payload['index']}" for event in group)


def _held(job: Job, group: Sequence[LoggedEvent]) -> Resources:
    found = Resources()
    for event in group:
        found = found + spec_of(job).task(event.payload["task"]).request
    return found


def _lost(job: Job, group: Sequence[LoggedEvent], pods: Mapping[Key, Pod]) -> tuple[float, float]:
    """The longest run time of these pods, and the run time times cards of all, in seconds."""
    longest = on_cards = 0.0
    for event in group:
        pod = pods.get(_key(event.payload))
        if pod is None or pod.started_at is None:
            continue
        seconds = max((event.at - pod.started_at).total_seconds(), 0.0)
        request = spec_of(job).task(pod.task).request
        longest, on_cards = max(longest, seconds), on_cards + sum(card_counts(request).values()) * seconds
    return longest, on_cards


def _key(payload: Mapping[str, Any]) -> Key:
    return payload["task"], payload["index"], payload["attempt"]


def _by_key(pods: Iterable[Pod]) -> dict[Key, Pod]:
    return {(pod.task, pod.index, pod.attempt): pod for pod in pods}


def _visible_shares(gave: bool, shares: Mapping[str, Any]) -> Mapping[str, Any]:
    """The shares with giver and taker swapped, if the job is the one that gained."""
    if gave or not shares.get("taker"):
        return shares
    return {**shares, "giver": shares["taker"], "taker": shares["giver"]}


def _gave(receipt: Receipt) -> Callable[[int], str]:
    if receipt.other:
        return lambda n: ngettext(
            "%(n)d pod on %(nodes)s was evicted for job %(other)s.",
            "%(n)d pods on %(nodes)s were evicted for job %(other)s.",
            n,
        )
    if receipt.is_for_job:
        return lambda n: ngettext(
            "%(n)d pod on %(nodes)s was evicted for a job of another tenant.",
            "%(n)d pods on %(nodes)s were evicted for a job of another tenant.",
            n,
        )
    return lambda n: ngettext("%(n)d pod was evicted from %(nodes)s.", "%(n)d pods were evicted from %(nodes)s.", n)


def _gained(receipt: Receipt) -> Callable[[int], str]:
    if receipt.other:
        return lambda n: ngettext(
            "%(n)d pod of job %(other)s on %(nodes)s was evicted for this job.",
            "%(n)d pods of job %(other)s on %(nodes)s were evicted for this job.",
            n,
        )
    return lambda n: ngettext(
        "%(n)d pod of another tenant on %(nodes)s was evicted for this job.",
        "%(n)d pods of another tenant on %(nodes)s were evicted for this job.",
        n,
    )


_RULES = {
    "preempt": lambda: _("Preemption within the queue"),
    "gangpreempt": lambda: _("Preemption within the queue by a whole gang"),
    "reclaim": lambda: _("Reclaim by another queue"),
    "gangreclaim": lambda: _("Reclaim by another queue for a whole gang"),
    "shuffle": lambda: _("Rescheduling by the policy"),
    "drain": lambda: _("An operator drains the node"),
    "volume": lambda: _("Its volume cannot be reached from the node"),
}
