"""Predictions in words, for pages, REST and the command line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.forecasts.selectors import Accuracy
from hekla.apps.job_history import labels
from hekla.apps.sentences import together
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import Resources
from hekla.domain.spec_changes import SpecChange, SpecField, apply_changes
from hekla.simulation.eta import Eta
from hekla.simulation.holders import MOST_NAMED, Holder, Holders, total
from hekla.simulation.suggestions import Suggestion
from hekla.simulation.what_if import OtherJobs, StartVerdict, WhatIfResult

_MOST_NODES, _MOST_JOBS = 4, MOST_NAMED


@dataclass(frozen=True, slots=True)
class SuggestionText:
    """A suggestion in words. `change`: its text form; `is_of_size`: a submitted job can be changed this way."""

    change: str
    text: str
    note: str
    is_of_size: bool


def head(answer: WhatIfResult) -> str:
    """The verdict in a few words."""
    return _HEADS[answer.verdict]()


_HEADS = {
    StartVerdict.NOW: lambda: _("Would start now"),
    StartVerdict.WAITS: lambda: _("Would be pending"),
    StartVerdict.NEVER: lambda: _("Cannot start now"),
}


def sentences(answer: WhatIfResult, now: datetime) -> list[str]:
    """The whole prediction but the start time, the most important first."""
    if answer.verdict is StartVerdict.NOW:
        return [*where(answer.nodes), *evicted(answer.evicts)]
    return [*answer.problems, *map(labels.reason, answer.reasons), *in_use(answer, now), *place(answer)]


def in_use(answer: WhatIfResult, now: datetime) -> list[str]:
    """The jobs that hold what it lacks, with amounts and the expected time until they end, if any."""
    held = answer.holders
    parts = [_holds(holder, now) for holder in held.known[:_MOST_JOBS]]
    if rest := held.known[_MOST_JOBS:]:
        amount = labels.exact_amounts(total(holder.amount for holder in rest))
        sentence = ngettext("%(n)d other job holds %(amount)s.", "%(n)d other jobs hold %(amount)s.", len(rest))
        parts.append(sentence % {"n": len(rest), "amount": amount})
    if held.unknown:
        amount = labels.exact_amounts(held.unknown_amount)
        sentence = ngettext(
            "%(n)d job of other tenants holds %(amount)s.", "%(n)d jobs of other tenants hold %(amount)s.", held.unknown
        )
        parts.append(sentence % {"n": held.unknown, "amount": amount})
    parts += _admitted_before(answer.admitted)
    return [together(parts)] if parts else []


def _admitted_before(admitted: Holders) -> list[str]:
    """The jobs that were admitted before, hold nothing yet, and wait for the same resources."""
    parts = []
    for one in admitted.known[:_MOST_JOBS]:
        facts = {"job": one.name, "amount": labels.exact_amounts(one.amount)}
        parts.append(_("Job %(job)s was admitted before and waits for %(amount)s.") % facts)
    rest = admitted.known[_MOST_JOBS:]
    if others := len(rest) + admitted.unknown:
        amount = sum((one.amount for one in rest), admitted.unknown_amount)
        sentence = ngettext(
            "%(n)d other job was admitted before and waits for %(amount)s.",
            "%(n)d other jobs were admitted before and wait for %(amount)s.",
            others,
        )
        parts.append(sentence % {"n": others, "amount": labels.exact_amounts(amount)})
    return parts


def _holds(holder: Holder, now: datetime) -> str:
    """What a job holds, and for how long: `Job hog holds 1.5 CPU for about 25 min more.`."""
    left = (holder.ends_at - now).total_seconds() if holder.ends_at else 0.0
    facts = {"job": holder.name, "amount": labels.exact_amounts(holder.amount), "time": labels.about(left)}
    if left <= 0:
        return _("Job %(job)s holds %(amount)s.") % facts
    if holder.is_limit:
        return _("Job %(job)s holds %(amount)s for at most %(time)s more.") % facts
    return _("Job %(job)s holds %(amount)s for about %(time)s more.") % facts


def place(answer: WhatIfResult) -> list[str]:
    """Its position in its queue, if it waits."""
    facts = {"place": answer.place, "line": answer.line}
    is_waiting = answer.verdict is StartVerdict.WAITS
    return [_("Position in its queue: %(place)d of %(line)d.") % facts] if is_waiting else []


def when(answer: WhatIfResult, now: datetime, accuracy: Accuracy | None) -> list[str]:
    """The predicted start, the jobs that end before, and how accurate such predictions were."""
    if answer.verdict is not StartVerdict.WAITS:
        return []
    if answer.eta is None:
        return [_("Start time unknown: there is too little data on the run time of earlier jobs.")]
    found = span(answer.eta, now)
    if names := _names(answer.after):
        found.append(_("These jobs will have finished by then: %(jobs)s.") % {"jobs": names})
    if accuracy is not None:
        sentence = _("Such estimates were right for %(part)d%% of the last %(cases)d jobs of this queue.")
        found.append(sentence % {"part": accuracy.per_cent, "cases": accuracy.cases})
    return found


def why_and_when(answer: WhatIfResult, now: datetime, accuracy: Accuracy | None) -> list[str]:
    """The prediction for a pending job, beside its reasons: holders, position and start."""
    return [*in_use(answer, now), *place(answer), *when(answer, now, accuracy)]


def span(eta: Eta, now: datetime) -> list[str]:
    """The range of the start, and its basis."""
    earliest = labels.duration(floor((eta.earliest - now).total_seconds()))
    latest = labels.duration(ceil((eta.latest - now).total_seconds()))
    if not eta.cases:
        sentence = _("Starts in at most about %(latest)s, when time limits end the jobs before it.")
        return [sentence % {"latest": latest}]
    basis = ngettext(
        "The estimate uses the run times of at least %(n)d earlier job with the same commands or of the same batch.",
        "The estimate uses the run times of at least %(n)d earlier jobs with the same commands or of the same batch.",
        eta.cases,
    )
    span = _("Starts in about %(earliest)s to %(latest)s.") % {"earliest": earliest, "latest": latest}
    return [span, basis % {"n": eta.cases}]


def where(nodes: Mapping[str, int]) -> list[str]:
    """How many pods on which nodes."""
    most = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
    parts = [
        ngettext("%(n)d pod on node %(node)s", "%(n)d pods on node %(node)s", pods) % {"n": pods, "node": node}
        for node, pods in most[:_MOST_NODES]
    ]
    if others := most[_MOST_NODES:]:
        facts = {"n": sum(pods for _node, pods in others), "nodes": len(others)}
        parts.append(ngettext("%(n)d on %(nodes)d other node", "%(n)d on %(nodes)d other nodes", len(others)) % facts)
    return [_(", ").join(parts) + _(".")] if parts else []


def evicted(others: OtherJobs) -> list[str]:
    """The jobs whose pods would be evicted."""
    if not others.pods:
        return []
    sentence = ngettext(
        "%(n)d pod would be evicted for it: %(jobs)s.", "%(n)d pods would be evicted for it: %(jobs)s.", others.pods
    )
    return [sentence % {"n": others.pods, "jobs": _names(others)}]


def _names(others: OtherJobs) -> str:
    """The jobs that the reader may see by name; the rest as a number."""
    parts = [job.name for job in others.known]
    if others.unknown:
        parts.append(_of_other_tenants(others.unknown))
    return _(", ").join(parts)


def _of_other_tenants(number: int) -> str:
    return ngettext("%(n)d job of other tenants", "%(n)d jobs of other tenants", number) % {"n": number}


def describe_suggestions(spec: JobSpec, offers: Iterable[Suggestion]) -> list[SuggestionText]:
    """The suggestions in words."""
    return [_describe(spec, offer) for offer in offers]


def _describe(spec: JobSpec, offer: Suggestion) -> SuggestionText:
    parts = []
    for change in offer.changes:
        parts.append(_BY_LEVER[change.lever](spec, change))
        spec = apply_changes(spec, [change])
    note = ngettext("evicts %(n)d pod", "evicts %(n)d pods", offer.evicted) % {"n": offer.evicted}
    is_of_size = all(change.is_of_size for change in offer.changes)
    return SuggestionText(str(offer), _("; ").join(parts), note if offer.evicted else "", is_of_size)


def _queue(_spec: JobSpec, change: SpecChange) -> str:
    return _("Submit to queue %(queue)s") % {"queue": change.value}


def _replicas(spec: JobSpec, change: SpecChange) -> str:
    facts = {"task": change.task, "new": change.number, "old": spec.task(change.task).replicas}
    return _("%(task)s with %(new)d pods instead of %(old)d") % facts


def _least(spec: JobSpec, change: SpecChange) -> str:
    facts = {"task": change.task, "new": change.number, "old": spec.task(change.task).replicas}
    return _("%(task)s starts with %(new)d of its %(old)d pods. The others follow") % facts


def _selector(_spec: JobSpec, change: SpecChange) -> str:
    return _("%(task)s without a node selector") % {"task": change.task}


def _resource(spec: JobSpec, change: SpecChange) -> str:
    old = Resources({change.resource: spec.task(change.task).request.amount(change.resource)})
    new = Resources.parse({change.resource: change.value})
    facts = {"task": change.task, "new": labels.amounts(new), "old": labels.amounts(old)}
    return _("Each pod of %(task)s with %(new)s instead of %(old)s") % facts


_BY_LEVER = {
    SpecField.QUEUE: _queue,
    SpecField.REPLICAS: _replicas,
    SpecField.LEAST: _least,
    SpecField.SELECTOR: _selector,
    SpecField.RESOURCE: _resource,
}
