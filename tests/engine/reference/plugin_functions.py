"""Plugin functions, and how tiers combine them (`volcano-spec` §3.2, §5)."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.engine.reference import filters, scores
from tests.engine.reference.amounts import Amounts, at_most, fits_request, plus, share, surplus, total
from tests.engine.reference.shares import shares
from tests.engine.reference.state import Job, Node, ReferenceState, S, Task

from hekla.domain.phases import GangPhase
from hekla.engine.model import QueueSpec
from hekla.engine.policy import PluginOption, SchedulerPolicy

CRITICAL = ("system-cluster-critical", "system-node-critical")


class PluginFunctions:
    def __init__(self, state: ReferenceState, policy: SchedulerPolicy) -> None:
        self.state, self.policy = state, policy
        self.shares = shares(state)
        self.overcommitted = self._inqueue_of_all()
        self.used_at_open = total(node.used for node in state.nodes)

    def _functions_by_tier(self, kind: str, switch: str) -> Iterator[list[tuple[Callable[..., Any], PluginOption]]]:
        """Yield for each tier the functions `<kind>_<plugin>` whose switch is on."""
        for tier in self.policy.tiers:
            names = ((f"{kind}_{option.name}", option) for option in tier if option.has(switch))
            yield [(getattr(self, name), option) for name, option in names if hasattr(self, name)]

    def _functions(self, kind: str, switch: str) -> Iterator[tuple[Callable[..., Any], PluginOption]]:
        for tier in self._functions_by_tier(kind, switch):
            yield from tier

    # Order.

    def _first_difference(self, kind: str, switch: str, left: object, right: object) -> float:
        for function, _ in self._functions(kind, switch):
            if sign := function(left, right):
                return sign
        return 0

    def jobs_by_plugins(self, left: Job, right: Job) -> float:
        return self._first_difference("job_order", "enableJobOrder", left, right)

    def job_less(self, left: Job, right: Job) -> bool:
        if sign := self.jobs_by_plugins(left, right):
            return sign < 0
        return (left.spec.created_at, left.spec.uid) < (right.spec.created_at, right.spec.uid)

    def queue_less(self, left: QueueSpec, right: QueueSpec) -> bool:
        if sign := self._first_difference("queue_order", "enableQueueOrder", left, right):
            return sign < 0
        return (left.created_at, left.name) < (right.created_at, right.name)

    def task_less(self, left: Task, right: Task) -> bool:
        if sign := self._first_difference("task_order", "enableTaskOrder", left, right):
            return sign < 0
        return _name_key(left) < _name_key(right)

    def victim_less(self, left: Task, right: Task, preemptor: Job) -> bool:
        """Whether the left victim is evicted before the right one."""
        queues = self.state.queues
        if left.job.queue != right.job.queue:
            return self.queue_less(queues[right.job.queue], queues[left.job.queue])
        if left.job is not right.job and (sign := self.jobs_by_plugins(left.job, right.job)):
            return sign > 0
        return self.task_less(right, left)

    def job_order_priority(self, left: Job, right: Job) -> float:
        return right.spec.priority - left.spec.priority

    def job_order_gang(self, left: Job, right: Job) -> float:
        return left.is_ready() - right.is_ready()

    def job_order_drf(self, left: Job, right: Job) -> float:
        return self._held_share(left) - self._held_share(right)

    def task_order_priority(self, left: Task, right: Task) -> float:
        return right.spec.priority - left.spec.priority

    def queue_order_proportion(self, left: QueueSpec, right: QueueSpec) -> float:
        return right.priority - left.priority or self._queue_share(left) - self._queue_share(right)

    def _queue_share(self, queue: QueueSpec) -> float:
        return share(self.held_by(queue), self.shares[queue.name].deserved) if queue.name in self.shares else 0.0

    def held_by(self, queue: QueueSpec) -> Amounts:
        """What the queue holds by the session's events: pipelined tasks count."""
        return total(_held(job) for job in self.state.jobs if job.queue == queue.name)

    def _held_share(self, job: Job) -> float:
        return share(_held(job), self.state.total)

    # Readiness.

    def is_ready(self, job: Job) -> bool:
        return all(function(job) for function, _ in self._functions("ready", "enableJobReady"))

    def is_pipelined(self, job: Job) -> bool:
        return self._vote("pipelined", "enableJobPipelined", job)

    def is_enqueueable(self, job: Job) -> bool:
        return job.spec.min_resources is None or self._vote("enqueueable", "enableJobEnqueued", job)

    def _vote(self, kind: str, switch: str, job: Job) -> bool:
        for tier in self._functions_by_tier(kind, switch):
            votes = [function(job, option) for function, option in tier]
            if -1 in votes:
                return False
            if 1 in votes:
                return True
        return True

    def is_valid(self, job: Job) -> bool:
        return not any(option.name == "gang" for tier in self.policy.tiers for option in tier) or job.is_valid()

    def is_starving(self, job: Job) -> bool:
        for tier in self._functions_by_tier("starving", "enableJobStarving"):
            if tier:
                return all(function(job) for function, _ in tier)
        return False

    def ready_gang(self, job: Job) -> bool:
        return job.is_ready()

    def pipelined_gang(self, job: Job, _option: PluginOption) -> int:
        return 1 if job.is_pipelined() else -1

    def starving_gang(self, job: Job) -> bool:
        return job.waiting + job.ready < job.spec.min_available

    def starving_priority(self, job: Job) -> bool:
        return job.ready + job.waiting < len(job.tasks)

    # Admission.

    def enqueued(self, job: Job) -> None:
        for tier in self.policy.tiers:
            for option in tier:
                if option.has("enableJobEnqueued") and option.name == "overcommit":
                    self.overcommitted = plus(self.overcommitted, job.least)
                if option.has("enableJobEnqueued") and option.name == "proportion":
                    of_queue = self.shares[job.queue]
                    of_queue.inqueue = plus(of_queue.inqueue, job.least)

    def enqueueable_overcommit(self, job: Job, option: PluginOption) -> int:
        factor = option.arguments.get("overcommit-factor", 1.2)
        factor = factor if factor >= 1 else 1.2
        budget = {n: amount * factor - self.used_at_open.get(n, 0.0) for n, amount in self.state.total.items()}
        request = plus(self.overcommitted, job.least)
        return 1 if at_most({n: request[n] for n, much in job.least.items() if much > 0}, budget) else -1

    def enqueueable_proportion(self, job: Job, _option: PluginOption) -> int:
        of_queue, queue = self.shares[job.queue], self.state.queues[job.queue]
        request = plus(plus(plus(job.least, self.held_by(queue)), of_queue.inqueue), of_queue.elastic, -1)
        return 1 if queue.is_open and fits_request(request, of_queue.real, job.least) else -1

    def _inqueue_of_all(self) -> Amounts:
        found: Amounts = {}
        for job in self.state.jobs:
            if job.phase is GangPhase.INQUEUE:
                found = plus(found, job.least)
            if job.phase is GangPhase.RUNNING:
                found = plus(found, surplus(job.least, job.allocated))
        return found

    # Queues.

    def is_overused(self, queue: QueueSpec) -> bool:
        return any(function(queue) for function, _ in self._functions("overused", "enabledOverused"))

    def is_allocatable(self, queue: QueueSpec, task: Task) -> bool:
        return all(function(queue, task) for function, _ in self._functions("allocatable", "enabledAllocatable"))

    def is_preemptive(self, queue: QueueSpec, task: Task) -> bool:
        return all(function(queue, task) for function, _ in self._functions("allocatable", "enablePreemptive"))

    def overused_proportion(self, queue: QueueSpec) -> bool:
        return at_most(self.shares[queue.name].deserved, self.held_by(queue))

    def allocatable_proportion(self, queue: QueueSpec, task: Task) -> bool:
        request = plus(self.held_by(queue), task.request)
        return queue.is_open and fits_request(request, self.shares[queue.name].deserved, task.request)

    # Nodes.

    def refuses_always(self, task: Task, node: Node) -> bool:
        """Whether a plugin refuses the node even if tasks are evicted from it. Resources are not checked here."""
        return any(function(task, node) for function, _ in self._functions("refuses", "enablePredicate"))

    def refuses(self, task: Task, node: Node) -> bool:
        """Whether a plugin refuses the node in its present state."""
        is_crowded = any(function(node) for function, _ in self._functions("crowded", "enablePredicate"))
        return is_crowded or self.refuses_always(task, node)

    def score(self, task: Task, node: Node, among: list[Node]) -> float:
        """`among`: the candidate nodes, including this one."""
        return sum(
            function(task, node, among, option) for function, option in self._functions("score", "enableNodeOrder")
        )

    def crowded_predicates(self, node: Node) -> bool:
        """Whether the node has no free pod slot. Releasing pods count, but not those that the session evicted."""
        return node.spec.allocatable.amount("pods") <= sum(not task.is_evicted for task in node.tasks)

    def refuses_predicates(self, task: Task, node: Node) -> bool:
        return filters.refuses(task.spec, node.spec)

    def score_nodeorder(self, task: Task, node: Node, among: list[Node], option: PluginOption) -> float:
        return scores.nodeorder(task, node, among, option)

    def score_binpack(self, task: Task, node: Node, _among: list[Node], option: PluginOption) -> float:
        return scores.binpack(task, node, option)

    # Victims.

    def victims(self, action: str, task: Task, candidates: list[Task]) -> list[Task]:
        """The victims of the first tier whose plugins agree on any: per tier an intersection."""
        switch = {"preemptable": "enablePreemptable", "reclaimable": "enableReclaimable"}[action]
        for tier in self._functions_by_tier(action, switch):
            chosen: list[Task] | None = None
            for function, _ in tier:
                named = function(task, candidates)
                if not named:
                    chosen = None
                    break
                chosen = [one for one in chosen if one in named] if chosen else named
            if chosen:
                return chosen
        return []

    def preemptable_priority(self, task: Task, candidates: list[Task]) -> list[Task]:
        def is_less(one: Task) -> bool:
            if one.job is task.job:
                return one.spec.priority < task.spec.priority
            return one.job.spec.priority < task.job.spec.priority

        return [one for one in candidates if is_less(one)]

    def preemptable_gang(self, _task: Task, candidates: list[Task]) -> list[Task]:
        left: dict[str, int] = {}
        chosen = []
        for one in candidates:
            uid = one.job.spec.uid
            left.setdefault(uid, one.job.ready)
            if left[uid] > one.job.spec.min_available:
                left[uid] -= 1
                chosen.append(one)
        return chosen

    def preemptable_conformance(self, _task: Task, candidates: list[Task]) -> list[Task]:
        return [
            one
            for one in candidates
            if one.spec.priority_class not in CRITICAL and one.job.spec.namespace != "kube-system"
        ]

    def preemptable_drf(self, task: Task, candidates: list[Task]) -> list[Task]:
        mine = share(plus(_held(task.job), task.request), self.state.total)
        left: dict[str, Amounts] = {}
        chosen = []
        for one in candidates:
            uid = one.job.spec.uid
            left[uid] = plus(left.get(uid, _held(one.job)), one.request, -1)
            theirs = share(left[uid], self.state.total)
            if mine < theirs or abs(mine - theirs) <= 1e-6:
                chosen.append(one)
        return chosen

    reclaimable_gang, reclaimable_conformance = preemptable_gang, preemptable_conformance

    def reclaimable_proportion(self, _task: Task, candidates: list[Task]) -> list[Task]:
        left: dict[str, Amounts] = {}
        chosen = []
        for one in candidates:
            queue = self.state.queues[one.job.queue]
            held = left.setdefault(queue.name, self.held_by(queue))
            if not at_most(held, self.shares[queue.name].deserved):
                left[queue.name] = plus(held, one.request, -1)
                chosen.append(one)
        return chosen


def _held(job: Job) -> Amounts:
    promised = total(task.request for task in job.tasks if task.status is S.PIPELINED)
    return plus(job.allocated, promised)


def _name_key(task: Task) -> tuple[int, float, str]:
    parts = task.spec.name.split("-")
    number = int(parts[-1]) if len(parts) >= 3 and parts[-1].isdigit() else 0
    return number, task.spec.created_at, task.uid
