"""Why a queue deserves what it deserves, for one person: the engine's own figures, in a table and in sentences.

A person sees the names of the queues that they may see. The figures of the others are added up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.accounts.models import User
from hekla.apps.job_history import labels
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.domain.card_resources import of_cards
from hekla.engine import share_derivation
from hekla.engine.faults import ExtensionFailed
from hekla.engine.queue_tree import ROOT
from hekla.engine.share_derivation import DividedQueue, DividingRound, ShareDerivation
from hekla.simulation.snapshot_cache import Outlook, looking_at

_PROPORTION = "proportion"
_NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class DivisionRow:
    """A queue and one resource; or several queues that the person may not see, then `name` is empty.

    `setting`: what its settings say that it deserves. `limit`: None if it has none.
    """

    name: str
    count: int
    is_this: bool
    weight: int
    setting: float
    guarantee: float
    limit: float | None
    request: float
    allocated: float
    deserved: float


@dataclass(frozen=True, slots=True)
class RoundRow:
    """What one round gave the queue. `left`: in the cluster at its start; `weights`: of all queues that took part.

    `offered`: what it had before and its part by weight; `deserved`: what it got of that.
    """

    number: int
    left: float
    weight: int
    weights: float
    offered: float
    deserved: float
    sentence: str


@dataclass(frozen=True, slots=True)
class ShareExplanation:
    """Why the queue deserves `deserved` of a resource. `plugin`: empty if none divides the cluster.

    `resources`: all that can be explained. `rows`: the queue, its siblings, and in a tree its parents.
    """

    queue: str
    resource: str
    resources: tuple[str, ...]
    plugin: str
    total: float
    guaranteed: float
    deserved: float
    parents: tuple[str, ...]
    rows: tuple[DivisionRow, ...]
    rounds: tuple[RoundRow, ...]
    sentences: tuple[str, ...]


def explain_share(user: User, queue: Queue, resource: str = "") -> ShareExplanation | None:
    """The explanation for this resource; by default for the first kind of cards, else for CPUs.

    None if the scheduler leaves the queue out, because its settings are contradictory or the cluster's policy fails.
    """
    with looking_at(queue.cluster) as outlook:
        found = outlook.once("share derivation", lambda: _derived(outlook))
    if found is None or queue.name not in found.queues:
        return None
    names = _resources(found)
    chosen = resource if resource in names else names[0]
    visible = {one.name for one in queues.listed_visible_to(user) if one.cluster_id == queue.cluster_id}
    return _Explaining(found, found.queues[queue.name], chosen, visible | {queue.name, ROOT}).explanation(names)


def _derived(outlook: Outlook) -> ShareDerivation | None:
    try:
        return share_derivation.derive(outlook.session())
    except ExtensionFailed:
        return None


def _resources(found: ShareDerivation) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*of_cards(found.total), "cpu", "memory", *sorted(found.total))))


@dataclass(frozen=True, slots=True)
class _Explaining:
    """One explanation of `queue` for a person who sees the names `visible`."""

    found: ShareDerivation
    queue: DividedQueue
    resource: str
    visible: set[str]

    def explanation(self, resources: tuple[str, ...]) -> ShareExplanation:
        rounds = tuple(self._rounds())
        return ShareExplanation(
            queue=self.queue.name,
            resource=self.resource,
            resources=resources,
            plugin=self.found.plugin,
            total=self.found.total.amount(self.resource),
            guaranteed=self.found.guaranteed.amount(self.resource),
            deserved=self.queue.deserved.amount(self.resource),
            parents=tuple(name for name in self.queue.ancestors if name in self.visible),
            rows=tuple(self._rows()),
            rounds=rounds,
            sentences=tuple(self._sentences(rounds)),
        )

    def _rows(self) -> Iterator[DivisionRow]:
        """The queue, its siblings by name, its parents, and what is hidden."""
        parents = self.queue.ancestors
        every = self.found.queues.values()
        siblings = [one for one in every if one.ancestors == parents and one.name not in (self.queue.name, ROOT)]
        above = [self.found.queues[name] for name in parents if name in self.found.queues and name != ROOT]
        others = sorted(siblings, key=lambda one: one.name)
        for one in (self.queue, *others, *above):
            if one.name in self.visible:
                yield self._row([one], one.name)
        hidden = [one for one in others if one.name not in self.visible]
        if hidden:
            yield self._row(hidden, "")

    def _row(self, some: Sequence[DividedQueue], name: str) -> DivisionRow:
        def whole(amount: Callable[[DividedQueue], float]) -> float:
            return sum(map(amount, some))

        has_limit = all(self.resource not in one.unlimited for one in some)
        return DivisionRow(
            name=name,
            count=len(some),
            is_this=name == self.queue.name,
            weight=sum(one.weight for one in some),
            setting=whole(lambda one: one.setting.amount(self.resource)),
            guarantee=whole(lambda one: one.guarantee.amount(self.resource)),
            limit=whole(lambda one: one.limit.amount(self.resource)) if has_limit and len(some) == 1 else None,
            request=whole(lambda one: one.request.amount(self.resource)),
            allocated=whole(lambda one: one.allocated.amount(self.resource)),
            deserved=whole(lambda one: one.deserved.amount(self.resource)),
        )

    def _rounds(self) -> Iterator[RoundRow]:
        """The rounds in which the queue took part, while something of the resource was left."""
        for number, one in enumerate(self.found.rounds, start=1):
            if self.queue.name in one.offered and (number == 1 or one.left.amount(self.resource) > _NEAR):
                offered = one.offered[self.queue.name].amount(self.resource)
                deserved = one.deserved[self.queue.name].amount(self.resource)
                left = one.left.amount(self.resource)
                sentence = self._of_round(number, one, offered, deserved)
                yield RoundRow(number, left, self.queue.weight, one.weights, offered, deserved, sentence)

    def _of_round(self, number: int, one: DividingRound, offered: float, deserved: float) -> str:
        facts = {
            "number": number,
            "left": self._words(one.left.amount(self.resource)),
            "weight": self.queue.weight,
            "weights": f"{one.weights:g}",
            "offered": self._words(offered),
            "deserved": self._words(deserved),
        }
        part = _(
            "Round %(number)d: %(left)s are left. Its weight is %(weight)d of %(weights)s, so with what it has it "
            "would get %(offered)s."
        )
        return " ".join((part % facts, self._why(offered, deserved) % facts))

    def _why(self, offered: float, deserved: float) -> str:
        """Why it got what it got: which bound of the plugin decided."""
        if _is_near(deserved, offered):
            return _("It gets that.")
        if deserved > offered or _is_near(deserved, self.queue.guarantee.amount(self.resource)):
            return _("It gets %(deserved)s, because so much is guaranteed to it.")
        if _is_near(deserved, self.queue.request.amount(self.resource)):
            return _("It gets %(deserved)s, because its jobs request no more.")
        return _("It gets %(deserved)s, because it may hold no more.")

    def _sentences(self, rounds: Sequence[RoundRow]) -> Iterator[str]:
        yield _("The cluster has %(total)s.") % {"total": self._words(self.found.total.amount(self.resource))}
        if not self.found.plugin:
            yield _(
                "No plugin of the cluster's policy divides resources among queues, so no queue has a deserved share."
            )
            return
        yield from self._of_weights(rounds) if self.found.plugin == _PROPORTION else self._of_settings()
        facts = {"queue": self.queue.name, "deserved": self._words(self.queue.deserved.amount(self.resource))}
        yield _("So queue %(queue)s deserves %(deserved)s.") % facts

    def _of_weights(self, rounds: Sequence[RoundRow]) -> Iterator[str]:
        facts = {
            "plugin": self.found.plugin,
            "request": self._words(self.queue.request.amount(self.resource)),
        }
        yield _("The plugin %(plugin)s divides the resources by weight among the queues that have jobs.") % facts
        if not self.queue.has_jobs:
            yield _("This queue has no jobs, so it gets no part.")
            return
        yield _("The pods of this queue's jobs hold or request %(request)s. No queue deserves more than that.") % facts
        yield from self._of_limit()
        yield from (one.sentence for one in rounds)

    def _of_settings(self) -> Iterator[str]:
        setting, guarantee = (one.amount(self.resource) for one in (self.queue.setting, self.queue.guarantee))
        deserved = self.queue.deserved.amount(self.resource)
        facts = {
            "plugin": self.found.plugin,
            "setting": self._words(setting),
            "parents": " / ".join(name for name in reversed(self.queue.ancestors) if name in self.visible),
            "guarantee": self._words(guarantee),
        }
        yield _("The plugin %(plugin)s divides nothing by weight. It uses the settings of the queues.") % facts
        if self.queue.ancestors:
            yield _("The queue is in the tree below %(parents)s. The limits of its parents apply to it too.") % facts
        yield _("Its settings say that it deserves %(setting)s.") % facts
        yield from self._of_limit()
        if deserved > setting + _NEAR and guarantee:
            yield _("It deserves at least what is guaranteed to it: %(guarantee)s.") % facts
        elif deserved < setting - _NEAR:
            yield _("It cannot deserve more than it may hold.")

    def _of_limit(self) -> Iterator[str]:
        if self.resource in self.queue.unlimited:
            return
        others = self.found.guaranteed.amount(self.resource) - self.queue.guarantee.amount(self.resource)
        facts = {"limit": self._words(self.queue.limit.amount(self.resource)), "others": self._words(max(others, 0.0))}
        if self.resource in self.queue.capability:
            facts["capability"] = self._words(self.queue.capability.amount(self.resource))
            yield _("It may hold at most %(limit)s: its capability is %(capability)s.") % facts
        elif others > 0 and not self.queue.ancestors:
            yield _("It may hold at most %(limit)s, because %(others)s are guaranteed to other queues.") % facts
        else:
            yield _("It may hold at most %(limit)s.") % facts

    def _words(self, amount: float) -> str:
        """With two digits: amounts are in thousandths."""
        return labels.exact_amounts({self.resource: round(amount, -1)})


def hidden_queues(row: DivisionRow) -> str:
    """The name of a row of queues that the person may not see."""
    return ngettext("%(n)d other queue", "%(n)d other queues", row.count) % {"n": row.count}


def _is_near(left: float, right: float) -> bool:
    return abs(left - right) <= _NEAR * max(1.0, abs(left), abs(right))
