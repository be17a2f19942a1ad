"""Calls an external program at the points for which the arguments name a verb (`volcano-spec` §5.4).

Arguments: `extender.urlPrefix`, `extender.httpTimeout` (1s), `extender.ignorable` (false), `extender.managedResources`
(names; only pods that request one of them are sent; none: all pods), and the verbs. The plugin posts a JSON document to
the prefix with the verb appended, and expects one in response:

    onSessionOpenVerb, onSessionCloseVerb           {}                            {}
    predicateVerb       {task, nodes}               {refused: {node: reason}}
    prioritizeVerb      {task, nodes}               {scores: {node: number}}
    preemptableVerb, reclaimableVerb                {task, candidates}            {status: 1, 0 or -1, victims: [uid]}
    queueOverusedVerb   {queue}                     {overused: true or false}
    jobEnqueueableVerb  {job}                       {status: 1, 0 or -1}
    jobReadyVerb        {job}                       {ready: true or false}
    jobEnqueuedVerb, allocateFuncVerb, deallocateFuncVerb    {job} or {task, node}            {}

The engine itself does no network I/O: the caller of the cycle passes the function that posts. If that function is
missing or the response is invalid, an ignorable extender abstains; any other extender counts as a rejection. Responses
about nodes hold for the whole cycle; they are not requested again after a placement.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from hekla.domain.resources import Resources
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.node_fit import Refusal
from hekla.engine.policy import PluginOption, is_true
from hekla.engine.session import Session
from hekla.lib.durations import seconds
from hekla.lib.text import strip_control_codes

_DEFAULT_TIMEOUT = 1.0
_REJECTING = ("predicate", "preemptable", "reclaimable", "queueOverused", "jobEnqueueable", "jobReady")
_MOST_REASONS, _LONGEST_REASON, _OTHER_REASONS = 20, 200, "other reasons of the extender"
_VOTES = {1: Vote.PERMIT, 0: Vote.ABSTAIN, -1: Vote.REJECT}
Document = Mapping[str, Any]

READS_CLOCK = True
NEEDS = (
    Need(
        Input.EXTENDER_CALLS,
        Lack.REFUSES_ALL,
        gettext_noop("HEKLA_EXTENDERS does not allow this address. A missing answer is a rejection: no job starts."),
        lambda option, _policy: _rejects_without_answer(option),
    ),
    Need(
        Input.EXTENDER_CALLS,
        Lack.NOTHING,
        gettext_noop("It has no effect: HEKLA_EXTENDERS does not allow this address."),
        lambda option, _policy: not _rejects_without_answer(option),
    ),
    Need(Input.POD_LABELS, Lack.PART, gettext_noop("Calls do not contain labels of pods.")),
    Need(Input.POD_ANNOTATIONS, Lack.PART, gettext_noop("Calls do not contain annotations of pods.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Register the points that have a verb."""
    extender = _Extender(session, option)
    extender.ask("onSessionOpen", {}, dict)
    for verb, point, answer in (
        ("predicate", ExtensionPoint.PREDICATE, extender.refuse),
        ("prioritize", ExtensionPoint.NODE_ORDER, extender.score),
        ("preemptable", ExtensionPoint.PREEMPTABLE, extender.victims("preemptable")),
        ("reclaimable", ExtensionPoint.RECLAIMABLE, extender.victims("reclaimable")),
        ("queueOverused", ExtensionPoint.OVERUSED, extender.overused),
        ("jobEnqueueable", ExtensionPoint.JOB_ENQUEUEABLE, extender.enqueueable),
        ("jobEnqueued", ExtensionPoint.JOB_ENQUEUED, extender.enqueued),
        ("jobReady", ExtensionPoint.JOB_READY, extender.ready),
    ):
        if extender.has(verb):
            session.register(point, option, answer)
    session.on_close.append(lambda: extender.ask("onSessionClose", {}, dict))
    if extender.has("prioritize") or extender.has("predicate"):
        session.register(ExtensionPoint.TASK_CLASS, option, lambda pod: pod.job.group.uid)
    if extender.has("allocateFunc") or extender.has("deallocateFunc"):
        session.on_change.append(extender.changed)


def _rejects_without_answer(option: PluginOption) -> bool:
    """Whether it is not ignorable and has a verb for which a missing answer is a rejection."""
    arguments = option.inner("extender")
    is_ignorable = is_true(arguments.get("ignorable"), default=False)
    return not is_ignorable and any(arguments.get(f"{verb}Verb") for verb in _REJECTING)


class _Extender:
    """The external program and its cached scores."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._session = session
        self._arguments = option.inner("extender")
        self._ignorable = is_true(self._arguments.get("ignorable"), default=False)
        self._timeout = seconds(str(self._arguments.get("httpTimeout", ""))) or _DEFAULT_TIMEOUT
        self._managed = _names(self._arguments.get("managedResources"))
        self._scores: dict[Hashable, Vector] = {}

    def has(self, verb: str) -> bool:
        return bool(self._arguments.get(f"{verb}Verb"))

    def ask(self, verb: str, document: Document, read: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """The response as parsed by `read`; None without a valid response."""
        if not self.has(verb) or self._session.call is None:
            return None
        address = f"{str(self._arguments.get('urlPrefix', '')).rstrip('/')}/{self._arguments[f'{verb}Verb']}"
        try:
            return read(self._session.call(address, document, self._timeout))
        except Exception:  # any failure of the call or of parsing counts as no response
            return None

    def _manages(self, pod: PodInfo) -> bool:
        return not self._managed or any(name in self._managed for name in pod.spec.request)

    def refuse(self, pod: PodInfo, table: NodeTable) -> Sequence[Refusal]:
        if not self._manages(pod):
            return []
        names = [node.name for node in table.nodes]
        document = {"task": _task(pod), "nodes": names}
        refused = self.ask("predicate", document, lambda answer: dict(answer["refused"]))
        if refused is None:
            refused = {} if self._ignorable else dict.fromkeys(names, "extender does not answer")
        reasons = _bounded({name: str(refused[name]) for name in names if name in refused})
        return [
            Refusal(np.array([reasons.get(name) == reason for name in names]), reason, is_lasting=False)
            for reason in sorted(set(reasons.values()))
        ]

    def score(self, pod: PodInfo, table: NodeTable, rows: Rows) -> Vector:
        if not self._manages(pod):
            return np.zeros(len(table.used[rows]))
        key = pod.job.group.uid, pod.class_number
        if key not in self._scores:
            self._scores[key] = self._all_scores(pod, table)
        return self._scores[key][rows]

    def _all_scores(self, pod: PodInfo, table: NodeTable) -> Vector:
        names = [node.name for node in table.nodes]

        def read(answer: Document) -> Vector:
            scores = np.array([float(answer["scores"].get(name, 0.0)) for name in names])
            return np.where(np.isfinite(scores), scores, 0.0)

        scores: Vector | None = self.ask("prioritize", {"task": _task(pod), "nodes": names}, read)
        return np.zeros(len(table)) if scores is None else scores

    def victims(self, verb: str) -> Callable[[PodInfo, Sequence[PodInfo]], list[PodInfo] | None]:
        def name(pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo] | None:
            document = {"task": _task(pod), "candidates": [_task(one) for one in candidates]}
            status, uids = self.ask(verb, document, _status_and_victims) or (0 if self._ignorable else -1, frozenset())
            return None if status == 0 else [one for one in candidates if status > 0 and one.spec.uid in uids]

        return name

    def overused(self, queue: QueueSpec) -> bool:
        is_overused = self.ask("queueOverused", {"queue": queue.name}, lambda answer: bool(answer["overused"]))
        return not self._ignorable if is_overused is None else bool(is_overused)

    def enqueueable(self, job: JobInfo) -> Vote:
        vote = self.ask("jobEnqueueable", {"job": _job(job)}, lambda answer: _VOTES[answer["status"]])
        return vote or (Vote.ABSTAIN if self._ignorable else Vote.REJECT)

    def enqueued(self, job: JobInfo) -> None:
        self.ask("jobEnqueued", {"job": _job(job)}, dict)

    def ready(self, job: JobInfo) -> bool:
        is_ready = self.ask("jobReady", {"job": _job(job)}, lambda answer: bool(answer["ready"]))
        return self._ignorable if is_ready is None else bool(is_ready)

    def changed(self, pod: PodInfo, row: int, sign: int) -> None:
        verb = "allocateFunc" if sign > 0 else "deallocateFunc"
        self.ask(verb, {"task": _task(pod), "node": self._session.table.nodes[row].name}, dict)


def _bounded(reasons: Mapping[str, str]) -> Mapping[str, str]:
    """The reasons, short and readable; rare ones together. They are stored with each job that waits."""
    short = {node: _readable(reason) or _OTHER_REASONS for node, reason in reasons.items()}
    common = {reason for reason, _ in Counter(short.values()).most_common(_MOST_REASONS)}
    return {node: reason if reason in common else _OTHER_REASONS for node, reason in short.items()}


def _readable(reason: str) -> str:
    """The reason without what the database or a terminal refuses."""
    return strip_control_codes(reason[:_LONGEST_REASON]).encode(errors="replace").decode()


def _names(value: object) -> frozenset[str]:
    """The names in a list of names or of `{name: …}`, or in a comma-separated text."""
    if isinstance(value, str):
        return frozenset(name.strip() for name in value.split(",") if name.strip())
    listed = value if isinstance(value, list | tuple) else ()
    return frozenset(str(one.get("name", "") if isinstance(one, Mapping) else one) for one in listed)


def _status_and_victims(answer: Document) -> tuple[int, frozenset[str]]:
    return int(answer["status"]), frozenset(answer.get("victims", ()))


def _task(pod: PodInfo) -> Document:
    spec = pod.spec
    return {
        "uid": spec.uid,
        "name": spec.name,
        "role": spec.role,
        "job": pod.job.group.uid,
        "namespace": pod.job.group.namespace,
        "queue": pod.job.group.queue,
        "node": pod.node,
        "status": str(pod.status),
        "request": spec.request.quantities(),
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
    }


def _job(job: JobInfo) -> Document:
    group = job.group
    return {
        "uid": group.uid,
        "name": group.name,
        "namespace": group.namespace,
        "queue": group.queue,
        "priority": group.priority,
        "phase": str(job.phase),
        "minAvailable": group.min_available,
        "minResources": (group.min_resources or Resources()).quantities(),
        "tasks": {str(status): count for status, count in sorted(job.count_by_status.items()) if count},
    }
