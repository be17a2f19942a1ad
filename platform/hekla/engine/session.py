"""The working state of one cycle: nodes, jobs, queues, and the functions that plugins registered.

The session combines the results of an extension point by Volcano's rules (`volcano-spec` §3.2): tiers in order, plugins
in order, each only if its switch is on.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from hekla.engine import registry, shards, victim_selection
from hekla.engine.columns import Mask, Vector
from hekla.engine.decisions import Bind, Cause, Eviction, PendingReason
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.fair_order import JobOrders
from hekla.engine.hypernodes import HyperNodeInfo
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.job_table import Jobs
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.node_fit import NodeFit
from hekla.engine.policy import PluginOption, SchedulerPolicy
from hekla.engine.registrations import PluginFunction, Registrations
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.share_rounds import ShareNotes
from hekla.engine.shared_values import ReasonsByJob
from hekla.engine.subjobs import SubJobInfo
from hekla.engine.topology_counts import TopologyCounts
from hekla.engine.victim_selection import NamedFunction, VictimSelection

_UID: Callable[[JobInfo], str] = attrgetter("group.uid")
_NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})
Call = Callable[[str, Mapping[str, Any], float], Any]
"""Posts a document to another program: address, document, timeout in seconds. Returns its document; may raise."""


class Session:
    """The working state of one cycle. `reasons`: why jobs wait; `binds` and `evictions`: the decisions so far.

    `is_explained`: whether reasons are worked out; no decision depends on it. `only_admits`: no pod can be placed or
    evicted, so plugins that only look at nodes are not opened, and no action but `enqueue` runs.
    """

    is_explained = True
    only_admits = False

    share_notes: ShareNotes | None = None
    """Where the plugin that divides the cluster notes how; None: it notes nothing."""

    def __init__(self, cache: SchedulerCache, policy: SchedulerPolicy, now: float, call: Call | None = None) -> None:
        self.cache, self.state, self.policy, self.now, self.call = cache, cache.state, policy, now, call
        self.dimensions = cache.dimensions
        self.table = cache.table.for_session()
        self.total_resources: Vector = self.table.allocatable.sum(axis=0)
        self.queues, self.jobs = cache.queues, cache.jobs
        self.node_pods = cache.node_pods
        """Per row the pods that are allocated or pipelined there, by uid."""
        self.queue_totals = cache.queue_totals.by_queue
        """Totals of each queue's jobs before the session."""
        self.storage, self.devices = cache.state.storage, cache.state.devices
        self.node_index, self.hypernodes = cache.node_index, cache.hypernodes
        self.action = ""
        """The action that is running; empty before the first."""
        self.binds: list[Bind] = []
        self.evictions: list[Eviction] = []
        self.job_order_changes = False
        """Whether job order depends on more than the job itself; a plugin sets it when it opens."""
        self.job_orders = JobOrders()
        self.reverted_evictions = 0
        """Number of evictions that were undone."""
        self.revived_pods = 0
        """Number of undone evictions whose pod was not running before, but counts as running now."""
        self.nominated: dict[str, str] = {}
        """By pod: the node where evictions of this session make room for it."""
        self.attempted_pods: set[str] = set()
        """Pods for which an action looked for a node."""
        self._reverted_uids: set[str] = set()
        """Pods whose eviction was undone: Volcano's scorers no longer count them."""
        self.reasons = ReasonsByJob()
        self.on_change: list[Callable[[PodInfo, int, int], None]] = []
        """Called after each change with pod, row, and sign: 1 after a placement or an undone eviction, else -1."""
        self.quotas_of: Callable[[JobInfo], Hashable] = _no_quotas
        """The tenant quotas that a job counts for."""
        self.bind_annotations: dict[str, Mapping[str, str]] = {}
        """By pod: the annotations that it gets with its bind."""
        self.on_close: list[Callable[[], None]] = []
        self._token = object()
        """Identity of this session, for sort keys cached in jobs."""
        self._registrations = Registrations(policy.tiers)
        self._node_fits: dict[Hashable, NodeFit] = {}
        self._classes: dict[str, Hashable] = {}
        self.topology_counts = TopologyCounts(self.node_pods, cache.selector_index)
        self.on_change.append(self.topology_counts.update)
        self._shard = shards.of_session(cache.state, self.table)

    def end(self) -> None:
        """Drop what refers to the session itself: else only a garbage collection frees its memory."""
        self.quotas_of = _no_quotas
        self.on_change.clear()
        self.on_close.clear()
        self._registrations.clear()
        self._node_fits.clear()
        self.table.unexamined.clear()

    # Registered functions.

    def register(
        self, point: ExtensionPoint, option: PluginOption, function: PluginFunction, *, is_cacheable: bool = False
    ) -> None:
        """Register a plugin's function, unless its switch is off.

        `is_cacheable`: a rejection of one job holds for all equal jobs (`equivalence`) until resources are given up; at
        JOB_ORDER: it orders equal jobs by age alone.
        """
        switch = point.switch
        if not switch or option.has(switch):
            self._registrations.add(point, option, function, is_cacheable=is_cacheable)
            self.job_order_changes |= point is ExtensionPoint.JOB_ORDER and registry.is_external(option.name)

    def register_builtin(self, point: ExtensionPoint, function: PluginFunction) -> None:
        """Register a cacheable function under every policy, before all plugins."""
        self._registrations.add_builtin(point, function)

    def is_cacheable(self, point: ExtensionPoint) -> bool:
        """Whether all functions of a point are cacheable (`register`)."""
        return self._registrations.is_cacheable(point)

    def points_used_by(self, option: PluginOption) -> frozenset[ExtensionPoint]:
        """The points at which a plugin registered."""
        return self._registrations.points_of(option)

    def functions(self, point: ExtensionPoint) -> list[PluginFunction]:
        """All functions of a point, in order."""
        return self._registrations.flattened(point)

    def all_agree(self, point: ExtensionPoint, *arguments: object) -> bool:
        """Whether all functions return true."""
        for function in self.functions(point):  # noqa: SIM110  (a generator costs more than most of these functions)
            if not function(*arguments):
                return False
        return True

    def any_agrees(self, point: ExtensionPoint, *arguments: object) -> bool:
        """Whether any function returns true."""
        for function in self.functions(point):  # noqa: SIM110
            if function(*arguments):
                return True
        return False

    def is_permitted(self, point: ExtensionPoint, *arguments: object) -> bool:
        """The result of a vote: any REJECT denies, a tier with a PERMIT permits; permitted if all abstain."""
        for tier in self._registrations.by_tier(point):
            votes = [function(*arguments) for function in tier]
            if Vote.REJECT in votes:
                return False
            if Vote.PERMIT in votes:
                return True
        return True

    # Order.

    def compare(self, point: ExtensionPoint, *sides: object) -> float:
        """The first non-zero result: negative if the left side comes first."""
        return next((sign for function in self.functions(point) if (sign := function(*sides))), 0)

    def job_before(self, left: JobInfo, right: JobInfo) -> bool:
        """Job order: plugins, then age, then name."""
        return self.rank(left) < self.rank(right)

    def compare_jobs(self, left: JobInfo, right: JobInfo) -> int:
        """Job order by plugins alone: negative if the left one comes first."""
        mine, other = self.rank(left)[:-2], self.rank(right)[:-2]
        return (mine > other) - (mine < other)

    def rank(self, job: JobInfo) -> tuple[Any, ...]:
        """The sort key of a job: plugins, then age, then uid. Cached until the job changes."""
        stamp = len(self.table.change_log) if self.job_order_changes else job.version
        if job.rank is None or job.rank[1] != stamp or job.rank[0] is not self._token:
            keys = [function(job) for function in self.functions(ExtensionPoint.JOB_ORDER)]
            job.rank = self._token, stamp, (*keys, job.group.created_at, job.group.uid)
        return job.rank[2]

    def queue_before(self, left: QueueSpec, right: QueueSpec) -> bool:
        """Queue order: plugins, then age, then name."""
        if sign := self.compare(ExtensionPoint.QUEUE_ORDER, left, right):
            return sign < 0
        return (left.created_at, left.name) < (right.created_at, right.name)

    def pod_before(self, left: PodInfo, right: PodInfo) -> bool:
        """Pod order (Volcano's TaskOrderFn): plugins, then the number at the end of the name, age, uid."""
        for function in self.functions(ExtensionPoint.TASK_ORDER):
            if sign := function(left, right):
                return bool(sign < 0)
        return left.order_key < right.order_key

    def sort_pods(self, pods: Iterable[PodInfo]) -> list[PodInfo]:
        """The pods in pod order."""
        by_name = [*pods]
        if len(by_name) == 1:
            return by_name
        by_name.sort(key=attrgetter("order_key"))
        if not self.functions(ExtensionPoint.TASK_ORDER):
            return by_name

        def compare(left: PodInfo, right: PodInfo) -> int:
            sign = self.compare(ExtensionPoint.TASK_ORDER, left, right)
            return (sign > 0) - (sign < 0)

        return sorted(by_name, key=cmp_to_key(compare))

    def subjob_before(self, left: SubJobInfo, right: SubJobInfo) -> bool:
        """Sub-job order: plugins, then the order of policies, then label values."""
        if sign := self.compare(ExtensionPoint.SUBJOB_ORDER, left, right):
            return sign < 0
        return (left.policy_index, left.label_values) < (right.policy_index, right.label_values)

    # Queries.

    def is_ready(self, job: JobInfo) -> bool:
        """Volcano's JobReady: enough pods are allocated for the job to start."""
        return self.all_agree(ExtensionPoint.JOB_READY, job)

    def is_pipelined(self, job: JobInfo) -> bool:
        """Volcano's JobPipelined: enough pods are allocated or pipelined."""
        return self.is_permitted(ExtensionPoint.JOB_PIPELINED, job)

    def is_subjob_ready(self, group: SubJobInfo) -> bool:
        """Volcano's SubJobReady."""
        return self.is_ready(group.job) if group.is_whole else self.all_agree(ExtensionPoint.SUBJOB_READY, group)

    def is_subjob_pipelined(self, group: SubJobInfo) -> bool:
        """Volcano's SubJobPipelined."""
        if group.is_whole:
            return self.is_pipelined(group.job)
        return self.is_permitted(ExtensionPoint.SUBJOB_PIPELINED, group)

    def node_fit(self, pod: PodInfo) -> NodeFit:
        """Feasible nodes and scores for the pod's class."""
        key = self.class_of(pod)
        found = self._node_fits.get(key)
        if found is None:
            found = NodeFit(pod, self.table, self.functions)
            self._node_fits[key] = found
        return found

    def class_of(self, pod: PodInfo) -> Hashable:
        """The key of the pod's class: equal keys have the same feasible nodes and scores."""
        if not self._registrations.has_any(ExtensionPoint.TASK_CLASS):
            return pod.class_number
        uid = pod.spec.uid
        if uid not in self._classes:
            self._classes[uid] = (
                pod.class_number,
                *(function(pod) for function in self.functions(ExtensionPoint.TASK_CLASS)),
            )
        return self._classes[uid]

    def representatives(self, job: JobInfo) -> list[PodInfo]:
        """One pending pod with requests of each class of the job."""
        if not self._registrations.has_any(ExtensionPoint.TASK_CLASS):
            return job.representatives()
        return list({self.class_of(pod): pod for pod in job.pending()}.values())

    def best_node(self, pod: PodInfo, within: Mask | None = None) -> tuple[int, bool] | None:
        """The nominated node if it has room, else the best of all; as `NodeFit.best_node`."""
        node_fit, row = self.node_fit(pod), self.table.row_of.get(pod.spec.nominated_node)
        if row is not None and (now := node_fit.has_room_now(row)) is not None:
            return row, now
        if self._shard is not None:
            return shards.best_node(node_fit, self._shard, within)
        return node_fit.best_node(within)

    def best_node_in(self, pod: PodInfo, hypernode: HyperNodeInfo) -> tuple[int, bool] | None:
        """As `best_node`, among the nodes of a hypernode."""
        node_fit, row = self.node_fit(pod), self.table.row_of.get(pod.spec.nominated_node)
        if row is not None and row in hypernode.rows and (now := node_fit.has_room_now(row)) is not None:
            return row, now
        scorers = self.functions(ExtensionPoint.DOMAIN_NODE_ORDER)

        def more(rows: npt.NDArray[np.intp]) -> Vector:
            return sum((scorer(pod, rows) for scorer in scorers), np.zeros(len(rows)))

        return node_fit.best_of(hypernode.rows, more)

    def hypernode_gradient(
        self, claim: JobInfo | SubJobInfo, hypernode: HyperNodeInfo, purpose: str = "allocate"
    ) -> list[list[HyperNodeInfo]]:
        """Lists of candidate descendants of a hypernode, the best list first. The first plugin decides."""
        function = next(iter(self.functions(ExtensionPoint.HYPERNODE_GRADIENT)), None)
        return [[hypernode]] if function is None else function(claim, hypernode, purpose)

    def hypernode_scores(self, group: SubJobInfo, hypernodes: Sequence[HyperNodeInfo]) -> Vector:
        """The score of each hypernode for a sub-job."""
        functions = self.functions(ExtensionPoint.HYPERNODE_ORDER)
        return sum((function(group, hypernodes) for function in functions), np.zeros(len(hypernodes)))

    @property
    def unsettled_jobs(self) -> Jobs:
        """Jobs with something left to decide."""
        return self.cache.unsettled_jobs

    @property
    def candidate_jobs(self) -> Jobs:
        """Jobs with something left to decide. In Volcano all jobs, because they affect the order of ties."""
        return self.jobs if self.policy.follows_volcano else self.unsettled_jobs

    def valid_jobs(self, *, among: Iterable[JobInfo] | None = None) -> list[JobInfo]:
        """The admitted and valid jobs among the candidates (or `among`), by uid. Records why others are invalid."""
        candidates = self.candidate_jobs.values() if among is None else among
        admitted = (job for job in candidates if job.is_admitted)
        return [job for job in sorted(admitted, key=_UID) if self.is_valid(job)]

    def is_valid(self, job: JobInfo) -> bool:
        """Volcano's JobValid; records the reason if it is not."""
        for function in self.functions(ExtensionPoint.JOB_VALID):
            if (problem := function(job)) is not None:
                if problem not in self.reasons[job.group.uid]:
                    self.reasons[job.group.uid] += (problem,)
                return False
        return True

    def copy_reasons(self, job: JobInfo, uids: Collection[str]) -> None:
        """Give the jobs with these uids the reasons of another."""
        self.reasons.share(uids, self.reasons[job.group.uid])

    def is_starving(self, job: JobInfo) -> bool:
        """Volcano's JobStarving: whether it may evict others. The first tier with functions decides."""
        for tier in self._registrations.by_tier(ExtensionPoint.JOB_STARVING):
            if tier:
                return all(function(job) for function in tier)
        return False

    def named_functions(self, point: ExtensionPoint) -> list[list[NamedFunction]]:
        """The functions of a point with their plugins' names, by tier."""
        return self._registrations.named(point)

    def select_victims(self, point: ExtensionPoint, pod: PodInfo, candidates: Sequence[PodInfo]) -> VictimSelection:
        """Volcano's Preemptable or Reclaimable: the victims among the candidates, for one pod.

        A pod that any plugin spares is no candidate, except in Volcano.
        """
        if self.policy.follows_volcano:
            return victim_selection.by_tiers(self.named_functions(point), (pod, candidates), candidates)
        protectors = chain.from_iterable(self.named_functions(ExtensionPoint.SPARED))
        remaining, spared = victim_selection.without_spared(protectors, pod, candidates)
        found = victim_selection.by_tiers(self.named_functions(point), (pod, remaining), candidates)
        return found._replace(spared_trail=spared) if spared else found

    def select_gang_victims(self, job: JobInfo, candidates: Sequence[PodInfo], action: str) -> VictimSelection:
        """The victims for a whole job; all plugins must agree. In Volcano the first tier decides."""
        functions = self.named_functions(ExtensionPoint.EVICTABLE)
        if self.policy.follows_volcano:
            return victim_selection.by_tiers(functions, (job, candidates, action), candidates)
        return victim_selection.by_all(chain.from_iterable(functions), job, candidates, action)

    def victim_pods(self) -> list[tuple[PodInfo, tuple[str, ...]]]:
        """Volcano's VictimTasks: pods to evict in any case, and the plugins of the first tier that names any."""
        running = [m for job in self.jobs.values() for m in job.pods if m.status is PodStatus.RUNNING]
        for tier in self.named_functions(ExtensionPoint.VICTIM_TASKS):
            found: dict[str, tuple[PodInfo, tuple[str, ...]]] = {}
            for name, function in tier:
                for pod in function(running):
                    _, others = found.get(pod.spec.uid, (pod, ()))
                    found[pod.spec.uid] = pod, (*others, name)
            if found:
                return list(found.values())
        return []

    def is_queue_draining(self, job: JobInfo) -> bool:
        """Whether its queue is draining; records that as the reason."""
        if not self.queues[job.group.queue].is_draining:
            return False
        self.reasons[job.group.uid] = (PendingReason(Cause.QUOTA, "enqueue", "", "queue_draining"),)
        return True

    def is_closed(self, queue: QueueSpec) -> bool:
        """Whether plugins give the queue nothing. In Hekla, the jobs of a closed queue continue."""
        return self.policy.follows_volcano and not queue.is_open

    # Changes.

    def place(self, pod: PodInfo, row: int, status: PodStatus) -> None:
        """Allocate or pipeline a pod."""
        if status is PodStatus.PIPELINED:
            self.table.pipeline(row, pod.request)
        else:
            self.table.allocate(row, pod.request)
        pod.job.hold(pod.request, now=status is not PodStatus.PIPELINED)
        self._update_status(pod, status, self.table.nodes[row].name)
        self.node_pods[row][pod.spec.uid] = pod
        self._notify(pod, row, 1)

    def unplace(self, pod: PodInfo) -> None:
        """Undo `place`."""
        row = self.table.row_of[pod.node]
        if pod.status is PodStatus.PIPELINED:
            self.table.pipeline(row, pod.request, -1)
        else:
            self.table.allocate(row, pod.request, -1)
            pod.job.allocated = pod.job.allocated - pod.request
        pod.job.claimed = pod.job.claimed - pod.request
        self._update_status(pod, PodStatus.PENDING, "")
        del self.node_pods[row][pod.spec.uid]
        self._notify(pod, row, -1)

    def evict(self, pod: PodInfo) -> None:
        """Set a placed pod to releasing: it keeps its resources, but no longer counts for its job."""
        row = self.table.row_of[pod.node]
        self.table.release(row, pod.request, counts=pod.spec.uid not in self._reverted_uids)
        pod.job.allocated = pod.job.allocated - pod.request
        pod.job.claimed = pod.job.claimed - pod.request
        self._update_status(pod, PodStatus.RELEASING, pod.node)
        self._notify(pod, row, -1)

    def unevict(self, pod: PodInfo) -> None:
        """Undo `evict`; the pod counts as running, whatever it was before (`volcano-spec` §3.4)."""
        row = self.table.row_of[pod.node]
        self.reverted_evictions += 1
        self.revived_pods += pod.spec.status is not PodStatus.RUNNING
        if self.policy.follows_volcano:
            self._reverted_uids.add(pod.spec.uid)
        self.table.release(row, pod.request, -1, counts=not self.policy.follows_volcano)
        pod.job.allocated = pod.job.allocated + pod.request
        pod.job.claimed = pod.job.claimed + pod.request
        self._update_status(pod, PodStatus.RUNNING, pod.node)
        self._notify(pod, row, 1)

    def bind(self, pod: PodInfo) -> None:
        """Bind an allocated pod."""
        notes = self.bind_annotations.get(pod.spec.uid, _NO_ANNOTATIONS)
        self.binds.append(Bind(pod.job.group.uid, pod.spec.uid, pod.node, notes))
        self._update_status(pod, PodStatus.BINDING, pod.node)

    def admit(self, job: JobInfo) -> None:
        """Admit a job: phase Inqueue."""
        self.cache.mark_changed(job)
        job.admit()

    def _update_status(self, pod: PodInfo, status: PodStatus, node: str) -> None:
        self.cache.mark_changed(pod.job)
        pod.job.update_status(pod, status, node)

    def _notify(self, pod: PodInfo, row: int, sign: int) -> None:
        for heard in self.on_change:
            heard(pod, row, sign)


def _no_quotas(_job: JobInfo) -> Hashable:
    return ()


def limit_vector(session: Session, amounts: Any) -> Vector:  # noqa: ANN401
    """Limits as a row; infinite where none is set."""
    row = np.full(len(session.dimensions.names), np.inf)
    for at, name in enumerate(session.dimensions.names):
        if amounts and name in amounts:
            row[at] = amounts[name]
    return row
