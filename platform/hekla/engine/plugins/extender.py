"""Another program has a say, at the points for which the arguments name a verb (`volcano-spec` §5.4).

Arguments: `extender.urlPrefix`, `extender.httpTimeout` (1s), `extender.ignorable` (false), `extender.managedResources`
(names; only tasks that ask for one of them are spoken of; none named: all), and the verbs. A verb is appended to the
prefix, a JSON document is posted there and one is expected back:

    onSessionOpenVerb, onSessionCloseVerb           {}                            {}
    predicateVerb       {task, nodes}               {refused: {node: reason}}
    prioritizeVerb      {task, nodes}               {scores: {node: number}}
    preemptableVerb, reclaimableVerb                {task, candidates}            {status: 1, 0 or -1, victims: [uid]}
    queueOverusedVerb   {queue}                     {overused: true or false}
    jobEnqueueableVerb  {job}                       {status: 1, 0 or -1}
    jobReadyVerb        {job}                       {ready: true or false}
    jobEnqueuedVerb, allocateFuncVerb, deallocateFuncVerb    {job} or {task, node}            {}

The engine itself talks to nobody: the caller of the cycle hands in the function that posts. When that is missing, or
the program does not answer well, an ignorable extender has nothing to say; of one that is not, the answer counts as no.
Programs answer for each node once a cycle, not after each placement.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from hekla.domain.resources import Resources
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.durations import seconds
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue
from hekla.engine.places import Refusal
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption, is_true
from hekla.engine.session import Session

_DEFAULT_TIMEOUT = 1.0
_VOTES = {1: Vote.PERMIT, 0: Vote.ABSTAIN, -1: Vote.REJECT}
Document = Mapping[str, Any]


def open_session(session: Session, option: PluginOption) -> None:
    """Register the points that have a verb."""
    extender = _Extender(session, option)
    extender.ask("onSessionOpen", {}, dict)
    for verb, point, answer in (
        ("predicate", Point.PREDICATE, extender.refuse),
        ("prioritize", Point.NODE_ORDER, extender.score),
        ("preemptable", Point.PREEMPTABLE, extender.victims("preemptable")),
        ("reclaimable", Point.RECLAIMABLE, extender.victims("reclaimable")),
        ("queueOverused", Point.OVERUSED, extender.overused),
        ("jobEnqueueable", Point.JOB_ENQUEUEABLE, extender.enqueueable),
        ("jobEnqueued", Point.JOB_ENQUEUED, extender.enqueued),
        ("jobReady", Point.JOB_READY, extender.ready),
    ):
        if extender.has(verb):
            session.register(point, option, answer)
    session.on_close.append(lambda: extender.ask("onSessionClose", {}, dict))
    if extender.has("prioritize") or extender.has("predicate"):
        session.register(Point.TASK_CLASS, option, lambda member: member.job.job.uid)
    if extender.has("allocateFunc") or extender.has("deallocateFunc"):
        session.on_change.append(extender.changed)


class _Extender:
    """The program and what it said."""

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
        """What it answers, as `read` understands it; None: no answer."""
        if not self.has(verb) or self._session.call is None:
            return None
        address = f"{str(self._arguments.get('urlPrefix', '')).rstrip('/')}/{self._arguments[f'{verb}Verb']}"
        try:
            return read(self._session.call(address, document, self._timeout))
        except Exception:  # whatever goes wrong between here and another program is no answer
            return None

    def _manages(self, member: Member) -> bool:
        return not self._managed or any(name in self._managed for name in member.task.request)

    def refuse(self, member: Member, table: NodeTable) -> Sequence[Refusal]:
        if not self._manages(member):
            return []
        names = [node.name for node in table.nodes]
        document = {"task": _task(member), "nodes": names}
        refused = self.ask("predicate", document, lambda answer: dict(answer["refused"]))
        if refused is None:
            refused = {} if self._ignorable else dict.fromkeys(names, "extender does not answer")
        reasons = sorted({str(reason) for reason in refused.values()})
        return [Refusal(np.array([refused.get(name) == reason for name in names]), reason) for reason in reasons]

    def score(self, member: Member, table: NodeTable, rows: Rows) -> Vector:
        if not self._manages(member):
            return np.zeros(len(table.used[rows]))
        key = member.job.job.uid, member.shape
        if key not in self._scores:
            self._scores[key] = self._all_scores(member, table)
        return self._scores[key][rows]

    def _all_scores(self, member: Member, table: NodeTable) -> Vector:
        names = [node.name for node in table.nodes]

        def read(answer: Document) -> Vector:
            scores = np.array([float(answer["scores"].get(name, 0.0)) for name in names])
            return np.where(np.isfinite(scores), scores, 0.0)

        scores: Vector | None = self.ask("prioritize", {"task": _task(member), "nodes": names}, read)
        return np.zeros(len(table)) if scores is None else scores

    def victims(self, verb: str) -> Callable[[Member, Sequence[Member]], list[Member] | None]:
        def name(member: Member, candidates: Sequence[Member]) -> list[Member] | None:
            document = {"task": _task(member), "candidates": [_task(one) for one in candidates]}
            status, uids = self.ask(verb, document, _status_and_victims) or (0 if self._ignorable else -1, frozenset())
            return None if status == 0 else [one for one in candidates if status > 0 and one.task.uid in uids]

        return name

    def overused(self, queue: Queue) -> bool:
        said = self.ask("queueOverused", {"queue": queue.name}, lambda answer: bool(answer["overused"]))
        return not self._ignorable if said is None else bool(said)

    def enqueueable(self, gang: Gang) -> Vote:
        vote = self.ask("jobEnqueueable", {"job": _job(gang)}, lambda answer: _VOTES[answer["status"]])
        return vote or (Vote.ABSTAIN if self._ignorable else Vote.REJECT)

    def enqueued(self, gang: Gang) -> None:
        self.ask("jobEnqueued", {"job": _job(gang)}, dict)

    def ready(self, gang: Gang) -> bool:
        said = self.ask("jobReady", {"job": _job(gang)}, lambda answer: bool(answer["ready"]))
        return self._ignorable if said is None else bool(said)

    def changed(self, member: Member, row: int, sign: int) -> None:
        verb = "allocateFunc" if sign > 0 else "deallocateFunc"
        self.ask(verb, {"task": _task(member), "node": self._session.table.nodes[row].name}, dict)


def _names(value: object) -> frozenset[str]:
    """Of a list of names or of `{name: …}`, or of a text with commas."""
    if isinstance(value, str):
        return frozenset(name.strip() for name in value.split(",") if name.strip())
    listed = value if isinstance(value, list | tuple) else ()
    return frozenset(str(one.get("name", "") if isinstance(one, Mapping) else one) for one in listed)


def _status_and_victims(answer: Document) -> tuple[int, frozenset[str]]:
    return int(answer["status"]), frozenset(answer.get("victims", ()))


def _task(member: Member) -> Document:
    task = member.task
    return {
        "uid": task.uid,
        "name": task.name,
        "role": task.role,
        "job": member.job.job.uid,
        "namespace": member.job.job.namespace,
        "queue": member.job.job.queue,
        "node": member.node,
        "status": str(member.status),
        "request": task.request.quantities(),
        "labels": dict(task.labels),
        "annotations": dict(task.annotations),
    }


def _job(gang: Gang) -> Document:
    job = gang.job
    return {
        "uid": job.uid,
        "name": job.name,
        "namespace": job.namespace,
        "queue": job.queue,
        "priority": job.priority,
        "phase": str(gang.phase),
        "minAvailable": job.min_available,
        "minResources": (job.min_resources or Resources()).quantities(),
        "tasks": {str(status): count for status, count in sorted(gang.count.items()) if count},
    }
