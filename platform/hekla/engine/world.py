"""What is kept of a cluster between cycles: columns of nodes, gangs, who is where, and the sums of the queues.

    world.follow(state)     take in what is not the very same object as before
    Session(world, ...)     decide; the session changes gangs and moves tasks as it goes
    world.follow(state)     that is taken back first: what was decided counts once a state says so

The cost is that of what changed; only comparing objects goes over all. Where a change cannot be followed (a resource
that nobody named before, two tasks of one uid) everything is built afresh, and so it is once as much has changed as
there is, which bounds what rounding and forgotten classes add up to. `differences` holds it against a fresh one.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from hekla.engine import checks
from hekla.engine.census import Sights
from hekla.engine.checks import Problems
from hekla.engine.columns import Dimensions, NodeTable
from hekla.engine.domains import Domains
from hekla.engine.gangs import Classes, Gang, Member
from hekla.engine.lines import Lines
from hekla.engine.model import ClusterState, Job, Node, Queue, TaskStatus
from hekla.engine.nodeindex import NodeIndex
from hekla.engine.sums import Ledger

_HOLD_NOTHING = frozenset(
    {TaskStatus.PENDING, TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.UNKNOWN, TaskStatus.PIPELINED}
)
_EMPTY = ClusterState((), (), ())
_CHANGES_AT_LEAST = 100_000
"""So many tasks may change before a small cluster is built afresh."""


class _NotFollowed(Exception):
    """A change for which everything must be built afresh."""


class World:
    """See the module.

    `state`: the last one as it was given; `queues` those of it that make sense, `refused` its jobs that make none.
    `gangs`: the jobs of these queues, by uid; `unsettled`: those about which something may be left to decide; `lines`:
    those of them that are alike; `singles`: those that are like no other.
    `residents`: for each row the tasks that hold something there.
    """

    def __init__(self) -> None:
        self._begin(_EMPTY)

    @classmethod
    def of(cls, state: ClusterState) -> "World":
        """A fresh one."""
        world = cls()
        world.follow(state)
        return world

    def _begin(self, state: ClusterState) -> None:
        """Know nothing yet but what resources there are."""
        self.state, self.queues, self.refused = _EMPTY, dict[str, Queue](), dict[str, Problems]()
        self.dimensions = _dimensions(state)
        self.table = NodeTable((), self.dimensions)
        self.nodes, self.domains = NodeIndex(()), Domains((), self.table)
        self.ledger, self.sights = Ledger(len(self.dimensions.names)), Sights()
        self.gangs, self.unsettled, self.singles = dict[str, Gang](), dict[str, Gang](), dict[str, Gang]()
        self.lines, self.residents = Lines(), list[dict[str, Member]]()
        self._classes = Classes(self.dimensions)
        self._twins, self._unsound = checks.twins(state.jobs), _unsound(state)
        self._nodes: dict[str, Node] = {}
        self._jobs: dict[Hashable, Job] = {}
        self._all: dict[Hashable, Gang] = {}
        """Of every job its gang, those of jobs that are left out too: they keep the places they have."""
        self._homes: dict[str, dict[str, Member]] = {}
        """Who holds something on a node, by its name; also on nodes that are not there."""
        self._uids: set[str] = set()
        self._stale: set[str] = set()
        """The nodes whose rows must be counted again."""
        self._moved: dict[str, Gang] = {}
        self._changes = 0
        """How many tasks were taken in since the beginning."""

    # What sessions do, and what is undone after them.

    def touch(self, gang: Gang) -> None:
        """A session changes this gang."""
        self._moved[gang.job.uid] = gang

    @property
    def moved(self) -> Mapping[str, Gang]:
        """The gangs that the session has changed, by uid."""
        return self._moved

    @property
    def everybody(self) -> Iterable[Gang]:
        """The gangs of all jobs, those of jobs that are left out too: they keep the places they have."""
        return self._all.values()

    def rewind(self) -> None:
        """Take back what the last session did."""
        for gang in self._moved.values():
            self._move_back(gang)
            gang.restore()
        self._moved.clear()

    def _move_back(self, gang: Gang) -> None:
        for member in gang.made:
            if member.status is not member.task.status or member.node != member.task.node:
                self._homes.get(member.node, {}).pop(member.task.uid, None)
                member.status, member.node = member.task.status, member.task.node
                self._seat(member)

    # What changes.

    def follow(self, state: ClusterState) -> None:
        """Be as the state says. What is the very same object as before is taken to be unchanged."""
        if state is self.state:
            self.rewind()
            return
        try:
            self._follow(state)
        except _NotFollowed:
            self._begin(state)
            self._take(state, [*state.jobs])
        except BaseException:
            self._begin(_EMPTY)
            raise

    def _follow(self, state: ClusterState) -> None:
        has_twins = self._twins or len({job.uid for job in state.jobs}) != len(state.jobs)
        if not self._jobs or has_twins or self._unsound != _unsound(state):
            raise _NotFollowed
        changed = [job for job in state.jobs if self._jobs.get(job.uid) is not job]
        self._changes += sum(len(job.tasks) for job in changed)
        if self._changes > max(len(self._uids), _CHANGES_AT_LEAST):
            raise _NotFollowed
        nodes = (node for node in state.nodes if self._nodes.get(node.name) is not node)
        if not self.dimensions.know(_amounts(nodes, state.queues, changed)):
            raise _NotFollowed
        self._take(state, changed)

    def _take(self, state: ClusterState, changed: list[Job]) -> None:
        self.queues = {queue.name: queue for queue in state.queues if queue.name not in self._unsound}
        self._take_nodes(state)
        self._take_jobs(state.jobs, changed)
        self._count_again()
        self.state = state

    # Nodes.

    def _take_nodes(self, state: ClusterState) -> None:
        nodes = state.nodes
        changed = [node for node in nodes if self._nodes.get(node.name) is not node]
        are_the_same = [node.name for node in nodes] == list(self._nodes)
        if are_the_same:
            self._renew(changed)
        else:
            self._set_up(nodes)
        if not are_the_same or state.hyper_nodes is not self.state.hyper_nodes:
            self.domains = Domains(state.hyper_nodes, self.table)
        self._nodes = {node.name: node for node in nodes}

    def _renew(self, changed: list[Node]) -> None:
        """The same nodes, some of which say something else of themselves."""
        for node in changed:
            self.table.renew(checks.tamed(node), self.dimensions)
        if changed:
            self.nodes = NodeIndex(self.table.nodes)

    def _set_up(self, nodes: tuple[Node, ...]) -> None:
        """Nodes came or went: rows are dealt out anew, and what is used of them moves along."""
        before, self.table = self.table, NodeTable([checks.tamed(node) for node in nodes], self.dimensions)
        self.table.inherit(before)
        self.nodes = NodeIndex(self.table.nodes)
        self.residents = [self._homes.setdefault(node.name, {}) for node in self.table.nodes]
        self._stale.update(self.table.row_of.keys() - before.row_of.keys())

    def _count_again(self) -> None:
        rows = [self.table.row_of[name] for name in self._stale if name in self.table.row_of]
        self.table.count(rows, ((row, member) for row in rows for member in self.residents[row].values()))
        self._stale.clear()

    # Jobs.

    def _take_jobs(self, jobs: tuple[Job, ...], changed: list[Job]) -> None:
        keys = {self._key(job): job for job in jobs}
        for key in self._jobs.keys() - keys.keys():
            self._remove(key)
        for job in changed:
            if (key := self._key(job)) in self._jobs:
                self._remove(key)
        self.rewind()
        looked_at = set[int]()
        gangs = [self._gang(job, looked_at) for job in changed]
        for gang, job in zip(gangs, changed, strict=True):
            self._add(self._key(job), gang)
        self._jobs = keys
        self._tell_apart(gangs)
        self._sort()

    def _tell_apart(self, gangs: list[Gang]) -> None:
        """Find out of which class their tasks are; of everybody's, where there are new conditions."""
        if self.sights.learn(gangs):
            gangs, self.lines = [*self._all.values()], Lines()
        self.sights.look(gangs)
        for gang in gangs:
            if gang.job.queue:
                self.lines.join(gang)

    def _key(self, job: Job) -> Hashable:
        return id(job) if job.uid in self._twins else job.uid

    def _gang(self, job: Job, looked_at: set[int]) -> Gang:
        problems = checks.wrong_with(job, self._unsound, self._twins, looked_at)
        if problems:
            self.refused[job.uid] = problems
            job = checks.held(job)
        return Gang(job, self._classes)

    def _add(self, key: Hashable, gang: Gang) -> None:
        uids = [task.uid for task in gang.job.tasks]
        known = len(self._uids)
        self._uids.update(uids)
        if len(self._uids) - known < len(uids) and not self._twins:
            raise _NotFollowed
        self._all[key] = gang
        if not _HOLD_NOTHING.issuperset(gang.count):
            for member in gang.members:
                self._seat(member)
        self.ledger.add(gang)

    def _seat(self, member: Member) -> None:
        """It holds a place on its node, if it does."""
        if member.node and member.status not in _HOLD_NOTHING:
            self._homes.setdefault(member.node, {})[self._name(member)] = member
            self._stale.add(member.node)

    def _name(self, member: Member) -> str:
        """Tasks of jobs that are left out may have the uid of another; nobody asks for them by it."""
        return member.task.uid if member.job.job.queue else f"{member.task.uid} {id(member)}"

    def _remove(self, key: Hashable) -> None:
        gang = self._all.pop(key)
        if self._moved.pop(gang.job.uid, None) is gang:
            self._move_back(gang)
        self.refused.pop(gang.job.uid, None)
        self._uids.difference_update(task.uid for task in gang.job.tasks)
        for member in gang.made:
            if self._homes.get(member.node, {}).pop(self._name(member), None) is not None:
                self._stale.add(member.node)
        self.ledger.remove(gang)
        self.lines.leave(gang)

    def _sort(self) -> None:
        """The gangs of queues that there are, in the order of the jobs."""
        known = ((key, self._all[key]) for key in self._jobs)
        self.gangs = {gang.job.uid: gang for _, gang in known if gang.job.queue in self.queues}
        self.unsettled = {uid: gang for uid, gang in self.gangs.items() if not gang.is_settled}
        self.singles = {uid: gang for uid, gang in self.unsettled.items() if gang.line is None}


def _unsound(state: ClusterState) -> set[str]:
    """The names of queues that make no sense."""
    return {queue.name for queue in state.queues if checks.queue_problems(queue)}


def _amounts(nodes: Iterable[Node], queues: Iterable[Queue], jobs: Iterable[Job]) -> Iterator[Iterable[str]]:
    """The names of the resources that there are, of each amount that somebody gives."""
    seen = set[int]()
    for node in nodes:
        yield node.allocatable
    for queue in queues:
        yield from (bound for bound in (queue.capability, queue.guarantee, queue.deserved) if bound)
    for job in jobs:
        if job.min_resources:
            yield job.min_resources
        for task in job.tasks:
            if id(task.request) not in seen:
                seen.add(id(task.request))
                yield task.request


def _dimensions(state: ClusterState) -> Dimensions:
    return Dimensions(_amounts(state.nodes, state.queues, state.jobs))
