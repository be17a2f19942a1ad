"""The context of a pod's page: every state with its time and reason, and how the pod ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.job_history import cluster_notices, endings, failures, history, labels, waits
from hekla.apps.job_history.waits import WaitInterval
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Pod
from hekla.domain.runtime_classes import NO_RUNTIME_CLASS

_MOST_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class PodStateEntry:
    """A state of the pod and how long it lasted, until the next state or until now. `state` selects its colour."""

    at: datetime
    state: str
    sentence: str
    lasted: str


def page(pod: Pod, *, may_act: bool, now: datetime) -> dict[str, Any]:
    """The context of the page. `may_act`: whether its reader may run commands in the pod."""
    attempts = selectors.attempts(pod.job, [(pod.task, pod.index)])
    waited = waits.stretches(pod.job, selectors.course(pod.job))
    return {
        "pod": pod,
        "job": pod.job,
        "attempts": _around(pod, attempts),
        "attempt_count": len(attempts),
        "is_last": attempts[-1].pk == pod.pk,
        "states": _states(pod, waited, now),
        "exit": endings.exit_of(pod),
        "failure": failures.explain(pod),
        "has_terminal": may_act and not services.no_terminal(pod),
        "may_copy_files": may_act and _has_files_after_its_end(pod),
        "notices": cluster_notices.of_pod(pod),
        "requests": labels.amounts(spec_of(pod.job).task(pod.task).request),
        "overhead": _overhead(pod),
    }


def _has_files_after_its_end(pod: Pod) -> bool:
    """Whether it has ended and its working folder can still be copied. On Kubernetes it goes with the pod."""
    is_over = pod.is_final and pod.started_at is not None and pod.job.deleted_at is None
    return is_over and pod.job.cluster.kind == Cluster.Kind.LOCAL


def _overhead(pod: Pod) -> str:
    """What the runtime class of the pod adds to its requests; empty if nothing."""
    name = spec_of(pod.job).task(pod.task).runtime_class
    known = clusters.runtime_classes([pod.job.cluster_id]).get(pod.job.cluster_id, {}) if name else {}
    overhead = known.get(name, NO_RUNTIME_CLASS).overhead
    return labels.amounts(overhead) if overhead else ""


def _around(pod: Pod, attempts: Sequence[Pod]) -> Sequence[Pod]:
    """The attempts before and after this one. Each links to its page, which shows its own neighbours."""
    place = next(number for number, one in enumerate(attempts) if one.pk == pod.pk)
    first = max(0, min(place - _MOST_ATTEMPTS // 2, len(attempts) - _MOST_ATTEMPTS))
    return attempts[first : first + _MOST_ATTEMPTS]


def _states(pod: Pod, waited: Sequence[WaitInterval], now: datetime) -> list[PodStateEntry]:
    end = pod.finished_at or now
    states = sorted([*_waiting(pod, waited, end), *_events(pod)], key=lambda one: one[0])
    behind = [at for at, _state, _sentence in states[1:]]
    return [
        PodStateEntry(at, state, sentence, "" if after is None and pod.is_final else _long(at, after or now))
        for (at, state, sentence), after in zip_longest(states, behind)
    ]


def _events(pod: Pod) -> Iterator[tuple[datetime, str, str]]:
    return ((line.at, line.state, line.sentence) for line in history.lines(selectors.pod_history(pod)))


def _waiting(pod: Pod, waited: Sequence[WaitInterval], end: datetime) -> Iterator[tuple[datetime, str, str]]:
    """The time from creation until the pod is bound, with what the job waited for."""
    pieces = list(waits.cut(pod.created_at, pod.bound_at or end, waited))
    yield pod.created_at, "waiting", _("Attempt %d was created and is pending.") % pod.attempt
    for piece in pieces:
        if piece.sentence:
            yield piece.begin, "waiting", piece.sentence


def _long(begin: datetime, end: datetime) -> str:
    return labels.duration((end - begin).total_seconds())
