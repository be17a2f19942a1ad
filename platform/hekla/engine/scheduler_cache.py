"""The cache of one cluster between cycles: node table, jobs, pods by node, and totals of queues.

    cache.update(state)     apply every object that is not the same as before
    Session(cache, ...)     decide; the session changes jobs and pods
    cache.update(state)     rolls that back first: a decision counts once a state contains it

An update costs what changed; only the comparison covers all objects. Some changes need a rebuild (a new resource name,
two pods of one uid). A rebuild also happens after as many changed pods as there are, which limits rounding errors and
unused classes. `audit.differences` compares the cache with a fresh one.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter

from hekla.engine import validation
from hekla.engine.columns import Dimensions, NodeTable
from hekla.engine.equivalence import EquivalenceClasses
from hekla.engine.hypernodes import HyperNodeTree
from hekla.engine.job_info import JobInfo, PodClasses, PodInfo
from hekla.engine.job_twins import TwinGroups
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec
from hekla.engine.node_index import NodeIndex
from hekla.engine.queue_totals import TotalsByQueue
from hekla.engine.selector_index import SelectorIndex
from hekla.engine.validation import Problems

_OFF_NODE = frozenset(
    {PodStatus.PENDING, PodStatus.SUCCEEDED, PodStatus.FAILED, PodStatus.UNKNOWN, PodStatus.PIPELINED}
)
_EMPTY = ClusterState((), (), ())
_PODS: Callable[[JobInfo], tuple[PodSpec, ...]] = attrgetter("group.pods")
_UID: Callable[[PodSpec], str] = attrgetter("uid")
_CHANGES_AT_LEAST = 100_000
"""A rebuild happens after at least this many changed pods."""


class _RebuildRequired(Exception):
    """The change needs a rebuild."""


class SchedulerCache:
    """The cache of one cluster; see the module.

    `state`: the last one. `queues`: its valid queues; `refused`: problems of its invalid jobs. `jobs`: of valid queues,
    by uid; `unsettled_jobs`: those with something left to decide; `equivalence_classes`: equal ones among them;
    `unique_jobs`: the others. `node_pods`: per row the pods that hold resources there.
    """

    def __init__(self) -> None:
        self._reset(_EMPTY)

    @classmethod
    def of(cls, state: ClusterState) -> "SchedulerCache":
        """A new cache of this state."""
        cache = cls()
        cache.update(state)
        return cache

    def _reset(self, state: ClusterState) -> TwinGroups:
        """Empty the cache; only the dimensions come from the state. Returns its jobs."""
        self._duplicates, self._invalid_queues = validation.duplicates(state.jobs), _invalid_queues(state)
        groups = TwinGroups(state.jobs, self._duplicates)
        self.state, self.queues, self.refused = _EMPTY, dict[str, QueueSpec](), dict[str, Problems]()
        self.dimensions = Dimensions(_resource_names(state.nodes, state.queues, groups.firsts()))
        self.table = NodeTable((), self.dimensions)
        self.node_index, self.hypernodes = NodeIndex(()), HyperNodeTree((), self.table)
        self.queue_totals, self.selector_index = TotalsByQueue(len(self.dimensions.names)), SelectorIndex()
        self.jobs, self.unsettled_jobs, self.unique_jobs = (
            dict[str, JobInfo](),
            dict[str, JobInfo](),
            dict[str, JobInfo](),
        )
        self.equivalence_classes, self.node_pods = EquivalenceClasses(), list[dict[str, PodInfo]]()
        self._classes = PodClasses(self.dimensions)
        self._known_nodes: dict[str, NodeSpec] = {}
        self._known_groups: dict[Hashable, PodGroupSpec] = {}
        self._all_jobs: dict[Hashable, JobInfo] = {}
        """All jobs by key, also refused ones: their pods keep their resources."""
        self._pods_by_node: dict[str, dict[str, PodInfo]] = {}
        """Pods that hold resources, by node name; also on unknown nodes."""
        self._pod_uids: set[str] = set()
        self._dirty_nodes: set[str] = set()
        """Nodes whose rows must be recounted."""
        self._changed_jobs: dict[str, JobInfo] = {}
        self._changed_pods = 0
        """Pods added since the last rebuild."""
        return groups

    # Changes by sessions.

    def mark_changed(self, job: JobInfo) -> None:
        """Record that the session changes this job."""
        self._changed_jobs[job.group.uid] = job

    @property
    def changed_jobs(self) -> Mapping[str, JobInfo]:
        """The jobs that the session changed, by uid."""
        return self._changed_jobs

    @property
    def all_jobs(self) -> Iterable[JobInfo]:
        """All jobs, also refused ones: their pods keep their resources."""
        return self._all_jobs.values()

    def roll_back(self) -> None:
        """Undo the changes of the last session."""
        for job in self._changed_jobs.values():
            self._restore_pods(job)
            job.restore()
        self._changed_jobs.clear()

    def _restore_pods(self, job: JobInfo) -> None:
        for pod in job.built_pods:
            if pod.status is not pod.spec.status or pod.node != pod.spec.node:
                self._pods_by_node.get(pod.node, {}).pop(pod.spec.uid, None)
                pod.status, pod.node = pod.spec.status, pod.spec.node
                self._add_to_node(pod)

    # Changes of the state.

    def update(self, state: ClusterState) -> None:
        """Apply a state. Objects identical to those before count as unchanged."""
        if state is self.state:
            self.roll_back()
            return
        try:
            self._update(state)
        except _RebuildRequired:
            self._apply(state, self._reset(state))
        except BaseException:
            self._reset(_EMPTY)
            raise

    def _update(self, state: ClusterState) -> None:
        if not self._known_groups or self._duplicates or self._invalid_queues != _invalid_queues(state):
            raise _RebuildRequired
        if len({group.uid for group in state.jobs}) != len(state.jobs):
            raise _RebuildRequired
        changed = TwinGroups([group for group in state.jobs if self._known_groups.get(group.uid) is not group])
        self._changed_pods += sum(len(group.pods) for group in changed.groups)
        if self._changed_pods > max(len(self._pod_uids), _CHANGES_AT_LEAST):
            raise _RebuildRequired
        nodes = (node for node in state.nodes if self._known_nodes.get(node.name) is not node)
        if not self.dimensions.covers(_resource_names(nodes, state.queues, changed.firsts())):
            raise _RebuildRequired
        self._apply(state, changed)

    def _apply(self, state: ClusterState, changed: TwinGroups) -> None:
        self.queues = {queue.name: queue for queue in state.queues if queue.name not in self._invalid_queues}
        self._update_nodes(state)
        self._update_jobs(state.jobs, changed)
        self._recount_nodes()
        self.state = state

    # Nodes.

    def _update_nodes(self, state: ClusterState) -> None:
        nodes = state.nodes
        changed = [node for node in nodes if self._known_nodes.get(node.name) is not node]
        are_the_same = [node.name for node in nodes] == list(self._known_nodes)
        if are_the_same:
            self._update_changed_nodes(changed)
        else:
            self._rebuild_nodes(nodes)
        if not are_the_same or state.hyper_nodes is not self.state.hyper_nodes:
            self.hypernodes = HyperNodeTree(state.hyper_nodes, self.table)
        self._known_nodes = {node.name: node for node in nodes}

    def _update_changed_nodes(self, changed: list[NodeSpec]) -> None:
        """Replace changed nodes; the rows stay."""
        for node in changed:
            self.table.update_node(validation.sanitized_node(node), self.dimensions)
        if changed:
            self.node_index = NodeIndex(self.table.nodes)

    def _rebuild_nodes(self, nodes: tuple[NodeSpec, ...]) -> None:
        """Rebuild the node table after nodes were added or removed; known nodes keep their usage."""
        before, self.table = self.table, NodeTable([validation.sanitized_node(node) for node in nodes], self.dimensions)
        self.table.copy_usage(before)
        self.node_index = NodeIndex(self.table.nodes)
        self.node_pods = [self._pods_by_node.setdefault(node.name, {}) for node in self.table.nodes]
        self._dirty_nodes.update(self.table.row_of.keys() - before.row_of.keys())

    def _recount_nodes(self) -> None:
        rows = [self.table.row_of[name] for name in self._dirty_nodes if name in self.table.row_of]
        self.table.recount(rows, ((row, pod) for row in rows for pod in self.node_pods[row].values()))
        self._dirty_nodes.clear()

    # Jobs.

    def _update_jobs(self, groups: tuple[PodGroupSpec, ...], changed: TwinGroups) -> None:
        known: dict[Hashable, PodGroupSpec] = dict(zip(self._keys(groups), groups, strict=True))
        keys = self._keys(changed.groups)
        for key in self._known_groups.keys() - known.keys() | self._known_groups.keys() & keys:
            self._remove(key)
        self.roll_back()
        jobs, twins = self._new_jobs(changed)
        self._all_jobs.update(zip(keys, jobs, strict=True))
        self._add_all(jobs, twins)
        self._known_groups = known
        self._classify(jobs, twins)
        self._index_jobs()

    def _classify(self, jobs: list[JobInfo], twins: list[list[JobInfo]]) -> None:
        """Set the classes of the pods of these new jobs, and of jobs with pods that match other selectors now."""
        concerned = self.selector_index.refresh()
        for job in concerned:
            self.equivalence_classes.remove(job)
        if concerned:
            jobs = list({id(job): job for job in (*jobs, *concerned)}.values())
            twins = [[job] for job in jobs]
        self.selector_index.match_pods(jobs)
        self.equivalence_classes.add_all(equals for equals in twins if equals[0].group.queue)

    def _keys(self, groups: Iterable[PodGroupSpec]) -> list[Hashable]:
        """The keys of these groups: their uids, but the identity of those whose uid is not unique."""
        uids: list[Hashable] = [group.uid for group in groups]
        if not self._duplicates:
            return uids
        return [id(group) if uid in self._duplicates else uid for uid, group in zip(uids, groups, strict=True)]

    def _new_jobs(self, changed: TwinGroups) -> tuple[list[JobInfo], list[list[JobInfo]]]:
        """The jobs of these groups, and the same jobs with twins together; twins are examined once."""
        by_position, checked, twins = dict[int, JobInfo](), set[int](), list[list[JobInfo]]()
        for positions in changed.positions:
            groups = [changed.groups[at] for at in positions]
            first = self._new_job(groups[0], checked)
            if groups[0].uid in self.refused:
                jobs = [first, *(self._new_job(group, checked) for group in groups[1:])]
                twins += [[job] for job in jobs]
            else:
                jobs = [first, *(JobInfo(group, self._classes, first) for group in groups[1:])]
                twins.append(jobs)
            by_position.update(zip(positions, jobs, strict=True))
        return [by_position[at] for at in range(len(by_position))], twins

    def _new_job(self, group: PodGroupSpec, checked: set[int]) -> JobInfo:
        problems = validation.refusal_problems(group, self._invalid_queues, self._duplicates, checked)
        if problems:
            self.refused[group.uid] = problems
            group = validation.without_queue(group)
        return JobInfo(group, self._classes)

    def _add_all(self, jobs: list[JobInfo], twins: list[list[JobInfo]]) -> None:
        pods = chain.from_iterable(map(_PODS, jobs))
        uids, known = [*map(_UID, pods)], len(self._pod_uids)
        self._pod_uids.update(uids)
        if len(self._pod_uids) - known < len(uids) and not self._duplicates:
            raise _RebuildRequired
        counts = (equals[0].count_by_status for equals in twins)
        holding = {id(by_status) for by_status in counts if not _OFF_NODE.issuperset(by_status)}
        """Twins share their counts."""
        for job in jobs if holding else ():  # in their order: it is also the order of the pods of a node
            if id(job.count_by_status) in holding:
                for pod in job.pods:
                    self._add_to_node(pod)
        self.queue_totals.add_all(twins)
        self.selector_index.add_all(jobs, twins)

    def _add_to_node(self, pod: PodInfo) -> None:
        """Add the pod to its node if it holds resources there."""
        if pod.node and pod.status not in _OFF_NODE:
            self._pods_by_node.setdefault(pod.node, {})[self._pod_key(pod)] = pod
            self._dirty_nodes.add(pod.node)

    def _pod_key(self, pod: PodInfo) -> str:
        """The key of a pod on its node: its uid, made unique for pods of refused jobs."""
        return pod.spec.uid if pod.job.group.queue else f"{pod.spec.uid} {id(pod)}"

    def _remove(self, key: Hashable) -> None:
        job = self._all_jobs.pop(key)
        if self._changed_jobs.pop(job.group.uid, None) is job:
            self._restore_pods(job)
        self.refused.pop(job.group.uid, None)
        self._pod_uids.difference_update(spec.uid for spec in job.group.pods)
        for pod in job.built_pods:
            if self._pods_by_node.get(pod.node, {}).pop(self._pod_key(pod), None) is not None:
                self._dirty_nodes.add(pod.node)
        self.queue_totals.remove(job)
        self.selector_index.remove(job)
        self.equivalence_classes.remove(job)

    def _index_jobs(self) -> None:
        """Rebuild the views over jobs of valid queues, in the order of the state."""
        in_order = map(self._all_jobs.__getitem__, self._known_groups)
        self.jobs = {job.group.uid: job for job in in_order if job.group.queue in self.queues}
        self.unsettled_jobs = {uid: job for uid, job in self.jobs.items() if not job.is_settled}
        self.unique_jobs = {uid: job for uid, job in self.unsettled_jobs.items() if job.equivalence_class is None}


def _invalid_queues(state: ClusterState) -> set[str]:
    """The names of invalid queues."""
    return {queue.name for queue in state.queues if validation.queue_problems(queue)}


def _resource_names(
    nodes: Iterable[NodeSpec], queues: Iterable[QueueSpec], groups: Iterable[PodGroupSpec]
) -> Iterator[Iterable[str]]:
    """The resource names of all amounts of these objects."""
    yielded = set[int]()
    for node in nodes:
        yield node.allocatable.keys()
    for queue in queues:
        yield from (bound.keys() for bound in (queue.capability, queue.guarantee, queue.deserved) if bound is not None)
    for group in groups:
        if group.min_resources is not None:
            yield group.min_resources.keys()
        for spec in group.pods:
            if id(spec.request) not in yielded:
                yielded.add(id(spec.request))
                yield spec.request.keys()
