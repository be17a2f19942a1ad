"""The cache of one cluster between cycles: node table, jobs, pods by node, and totals of queues.

    cache.update(state)     apply every object that is not the same as before
    Session(cache, ...)     decide; the session changes jobs and pods
    cache.update(state)     rolls that back first: a decision counts once a state contains it

An update costs what changed; only the comparison covers all objects. Some changes need a rebuild (a new resource name,
two pods of one uid). A rebuild also happens after as many changed pods as there are, which limits rounding errors and
unused classes. `audit.differences` compares the cache with a fresh one.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from hekla.engine import validation
from hekla.engine.columns import Dimensions, NodeTable
from hekla.engine.equivalence import EquivalenceClasses
from hekla.engine.hypernodes import HyperNodeTree
from hekla.engine.job_info import JobInfo, PodClasses, PodInfo
from hekla.engine.job_table import Jobs, JobTable
from hekla.engine.job_twins import TwinGroups
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodStatus, QueueSpec
from hekla.engine.node_index import NodeIndex
from hekla.engine.queue_totals import TotalsByQueue
from hekla.engine.selector_index import SelectorIndex
from hekla.engine.validation import Problems

_OFF_NODE = frozenset(
    {PodStatus.PENDING, PodStatus.SUCCEEDED, PodStatus.FAILED, PodStatus.UNKNOWN, PodStatus.PIPELINED}
)
_EMPTY = ClusterState((), (), ())
_UID: Callable[[PodGroupSpec], str] = attrgetter("uid")
_CHANGES_AT_LEAST = 100_000
"""A rebuild happens after at least this many changed pods."""


class _RebuildRequired(Exception):
    """The change needs a rebuild."""


class SchedulerCache:
    """The cache of one cluster; see the module.

    `state`: the last one. `queues`: its valid queues; `refused`: problems of its invalid jobs. `jobs`: of valid queues,
    by uid; `equivalence_classes`: equal ones among the unsettled; `unique_jobs`: the other unsettled ones;
    `jobs_without_equals`: these and the settled ones. `node_pods`: per row the pods that hold resources there.
    """

    def __init__(self) -> None:
        self._reset(_EMPTY)

    @classmethod
    def of(cls, state: ClusterState) -> "SchedulerCache":
        """A new cache of this state."""
        cache = cls()
        cache.update(state)
        return cache

    def _reset(self, state: ClusterState, duplicates: frozenset[str] = frozenset()) -> TwinGroups:
        """Empty the cache; only the dimensions come from the state. Returns its jobs.

        `duplicates`: uids from `validation.duplicates`.
        """
        self._duplicates, self._invalid_queues = duplicates, _invalid_queues(state)
        groups = TwinGroups(state.jobs, self._duplicates)
        self.state, self.queues, self.refused = _EMPTY, dict[str, QueueSpec](), dict[str, Problems]()
        self.dimensions = Dimensions(_resource_names(state.nodes, state.queues, groups.firsts()))
        self.table = NodeTable((), self.dimensions)
        self.node_index, self.hypernodes = NodeIndex(()), HyperNodeTree((), self.table)
        self.queue_totals, self.selector_index = TotalsByQueue(len(self.dimensions.names)), SelectorIndex()
        self.equivalence_classes, self.node_pods = EquivalenceClasses(), list[dict[str, PodInfo]]()
        self._classes = PodClasses(self.dimensions)
        self._known_nodes: dict[str, NodeSpec] = {}
        self._job_table = JobTable(self._classes)
        """All jobs, also refused ones: their pods keep their resources."""
        self._unsettled_jobs: Jobs | None = None
        self._index_jobs()
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
    def unsettled_jobs(self) -> Jobs:
        """The jobs of valid queues with something left to decide. Found on first use."""
        if self._unsettled_jobs is None:
            every, queues = self._job_table.all_stand_ins(), self.queues
            others = {job for job in every if job.is_settled or job.group.queue not in queues}
            self._unsettled_jobs = self._job_table.without(others)
        return self._unsettled_jobs

    @property
    def all_jobs(self) -> Iterable[JobInfo]:
        """All jobs, also refused ones, or what stands for them (`JobTable`): their pods keep their resources."""
        return self._job_table.stand_ins(self._job_table.groups)

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
            self._update_or_rebuild(state)
        except BaseException:
            self._reset(_EMPTY)
            raise

    def _update_or_rebuild(self, state: ClusterState) -> None:
        try:
            self._update(state)
        except _RebuildRequired:
            try:
                self._apply(state, self._reset(state))
            except _RebuildRequired:  # some uids are not unique
                self._apply(state, self._reset(state, validation.duplicates(state.jobs)))

    def _update(self, state: ClusterState) -> None:
        has_new_queues = state.queues is not self.state.queues
        if not self._job_table.groups or self._duplicates:
            raise _RebuildRequired
        if has_new_queues and self._invalid_queues != _invalid_queues(state):
            raise _RebuildRequired
        known, groups = self._job_table.groups, () if state.jobs is self.state.jobs else state.jobs
        changed = TwinGroups([group for group in groups if known.get(group.uid) is not group])
        self._changed_pods += sum(len(group.pods) for group in changed.groups)
        if self._changed_pods > max(len(self._pod_uids), _CHANGES_AT_LEAST):
            raise _RebuildRequired
        all_nodes = () if state.nodes is self.state.nodes else state.nodes
        nodes = (node for node in all_nodes if self._known_nodes.get(node.name) is not node)
        queues = state.queues if has_new_queues else ()
        if not self.dimensions.covers(_resource_names(nodes, queues, changed.firsts())):
            raise _RebuildRequired
        self._apply(state, changed)

    def _apply(self, state: ClusterState, changed: TwinGroups) -> None:
        if state.queues is not self.state.queues:
            self.queues = {queue.name: queue for queue in state.queues if queue.name not in self._invalid_queues}
        if state.nodes is not self.state.nodes or state.hyper_nodes is not self.state.hyper_nodes:
            self._update_nodes(state)
        if state.jobs is self.state.jobs:  # only nodes or queues changed
            self.roll_back()
            self._index_jobs()
        else:
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
        table, keys = self._job_table, self._keys(changed.groups, changed.uids)
        all_keys = keys if changed.groups is groups else self._keys(groups, [*map(_UID, groups)])
        known: dict[Hashable, PodGroupSpec] = dict(zip(all_keys, groups, strict=True))
        for key in table.groups.keys() - known.keys() | table.groups.keys() & keys if table.groups else ():
            self._remove(key, table.groups[key])
        self.roll_back()
        before = len(self._pod_uids)
        self._pod_uids.update(changed.pod_uids)
        if not self._duplicates and (len(known) < len(groups) or len(self._pod_uids) < before + len(changed.pod_uids)):
            raise _RebuildRequired
        self.selector_index.add_all(keys, changed)
        matched_anew = self.selector_index.refresh(known)
        new = set(keys) if matched_anew else ()
        concerned = [table[key] for key in matched_anew if key not in new]
        table.groups = known
        self._add_jobs(keys, changed)
        self._classify_again(concerned)
        self._index_jobs()

    def _classify_again(self, jobs: list[JobInfo]) -> None:
        """Set the classes of jobs with pods that match other selectors now."""
        for job in jobs:
            self.equivalence_classes.remove(job.group, job.equivalence_class)
            job.equivalence_class = None
        self._classify(jobs)

    def _classify(self, jobs: Collection[JobInfo]) -> None:
        """Set the classes of these built jobs and of their pods."""
        self.selector_index.match_pods(jobs)
        for job in jobs:
            if job.group.queue:
                self.equivalence_classes.add(job)

    def _keys(self, groups: Sequence[PodGroupSpec], uids: Sequence[str]) -> Sequence[Hashable]:
        """The keys of these groups: their uids, but the identity of those whose uid is not unique."""
        if not self._duplicates:
            return uids
        return [id(group) if uid in self._duplicates else uid for uid, group in zip(uids, groups, strict=True)]

    def _add_jobs(self, keys: Sequence[Hashable], changed: TwinGroups) -> None:
        """Add new jobs. Twins are examined once, and those that may have equals are built when they come up."""
        built = dict[int, JobInfo]()
        for first, positions in self._examined(changed):
            self.queue_totals.add(first, len(positions))
            for at in self._add_unbuilt(first, positions, keys, changed.groups):
                is_first = at == positions[0] and not first.is_template
                built[at] = first if is_first else JobInfo(changed.groups[at], self._classes, first)
        for at, job in sorted(built.items()):  # in their order: it is also the order of the pods of a node
            self._job_table[keys[at]] = job
            if not _OFF_NODE.issuperset(job.count_by_status):
                for pod in job.pods:
                    self._add_to_node(pod)
        self._classify(built.values())

    def _examined(self, changed: TwinGroups) -> Iterator[tuple[JobInfo, list[int]]]:
        """The first job of each shape, with the positions of all its twins. Refused jobs are examined one by one."""
        checked = set[int]()
        for positions in changed.positions:
            first = self._new_job(changed.groups[positions[0]], checked)
            if first.group is changed.groups[positions[0]]:
                yield first, positions
                continue
            yield first, positions[:1]
            yield from ((self._new_job(changed.groups[at], checked), [at]) for at in positions[1:])

    def _add_unbuilt(
        self, first: JobInfo, positions: list[int], keys: Sequence[Hashable], groups: Sequence[PodGroupSpec]
    ) -> Sequence[int]:
        """Add those of these twins that the template of a class can stand for. Returns the positions of the others."""
        if len(positions) == 1:
            return positions
        matched = self.selector_index.matched(groups, positions)
        alike = [at for at in positions if at not in matched] if matched else positions
        found = [*map(groups.__getitem__, alike)]
        template = self.equivalence_classes.add_unbuilt(first, found) if alike else None
        if template is None:
            return positions
        self._job_table.add_unbuilt(map(keys.__getitem__, alike), len(alike), template)
        return sorted(matched)

    def _new_job(self, group: PodGroupSpec, checked: set[int]) -> JobInfo:
        problems = validation.refusal_problems(group, self._invalid_queues, self._duplicates, checked)
        if problems:
            self.refused[group.uid] = problems
            group = validation.without_queue(group)
        return JobInfo(group, self._classes)

    def _add_to_node(self, pod: PodInfo) -> None:
        """Add the pod to its node if it holds resources there."""
        if pod.node and pod.status not in _OFF_NODE:
            self._pods_by_node.setdefault(pod.node, {})[self._pod_key(pod)] = pod
            self._dirty_nodes.add(pod.node)

    def _pod_key(self, pod: PodInfo) -> str:
        """The key of a pod on its node: its uid, made unique for pods of refused jobs."""
        return pod.spec.uid if pod.job.group.queue else f"{pod.spec.uid} {id(pod)}"

    def _remove(self, key: Hashable, group: PodGroupSpec) -> None:
        job = self._job_table.pop(key)
        if self._changed_jobs.pop(group.uid, None) is job:
            self._restore_pods(job)
        self.refused.pop(group.uid, None)
        self._pod_uids.difference_update(spec.uid for spec in group.pods)
        for pod in job.built_pods:
            if self._pods_by_node.get(pod.node, {}).pop(self._pod_key(pod), None) is not None:
                self._dirty_nodes.add(pod.node)
        self.queue_totals.remove(job)
        self.selector_index.remove(key, group)
        self.equivalence_classes.remove(group, job.equivalence_class)

    def _index_jobs(self) -> None:
        """Set the views over jobs of valid queues."""
        every, queues = self._job_table.all_stand_ins(), self.queues
        self.jobs = self._job_table.without({job for job in every if job.group.queue not in queues})
        self._unsettled_jobs = None
        alone = [job for job in every if job.equivalence_class is None and job.group.queue in queues]
        self.jobs_without_equals = {job.group.uid: job for job in alone}
        self.unique_jobs = {job.group.uid: job for job in alone if not job.is_settled}


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
