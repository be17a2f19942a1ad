"""A cycle under way: what is tried, taken back and decided (`volcano-spec` §3.4)."""

from tests.engine.reference.amounts import at_most
from tests.engine.reference.voices import Voices
from tests.engine.reference.world import Job, Node, S, Task, World

from hekla.domain.phases import GangPhase
from hekla.engine.decisions import Bind, Eviction
from hekla.engine.model import ClusterState, PodStatus
from hekla.engine.policy import SchedulerPolicy


class Run:
    def __init__(self, state: ClusterState, policy: SchedulerPolicy) -> None:
        self.world, self.policy = World(state), policy
        self.voices = Voices(self.world, policy)
        self.binds: list[Bind] = []
        self.evictions: list[Eviction] = []
        self.nominated: dict[str, str] = {}
        self.looked_at: set[str] = set()

    def valid_jobs(self) -> list[Job]:
        return [job for job in self.world.jobs if job.phase is not GangPhase.PENDING and self.voices.is_valid(job)]

    def node_named(self, name: str) -> Node | None:
        return next((node for node in self.world.nodes if node.spec.name == name), None)

    def best(self, task: Task, nodes: list[Node]) -> Node | None:
        """The one with the highest score, among equals the first by name."""
        by_name = sorted(nodes, key=lambda node: node.spec.name)
        return max(by_name, key=lambda node: self.voices.score(task, node, nodes), default=None)

    def may_hold(self, task: Task, node: Node) -> bool:
        """Allowed there, and room now or once something is released."""
        return not self.voices.refuses(task, node) and at_most(task.request, node.future)

    def place(self, task: Task, node: Node, status: PodStatus) -> None:
        task.status, task.node = status, node
        node.tasks.append(task)

    def unplace(self, task: Task) -> None:
        assert task.node is not None
        task.node.tasks.remove(task)
        task.status, task.node = S.PENDING, None

    def bind(self, task: Task) -> None:
        assert task.node is not None
        task.status = S.BINDING
        self.binds.append(Bind(task.job.spec.uid, task.uid, task.node.spec.name))


class Statement:
    """What was tried, to be kept or taken back."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.steps: list[tuple[str, Task]] = []

    def place(self, task: Task, node: Node) -> None:
        has_room = at_most(task.request, node.idle)
        self.run.place(task, node, S.ALLOCATED if has_room else S.PIPELINED)
        self.steps.append(("place", task))

    def promise(self, task: Task, node: Node) -> None:
        self.run.place(task, node, S.PIPELINED)
        self.steps.append(("place", task))

    def evict(self, task: Task) -> None:
        task.status, task.is_evicted = S.RELEASING, True
        self.steps.append(("evict", task))

    def commit(self, action: str, for_job: Job) -> None:
        for what, task in self.steps:
            if what == "evict":
                assert task.node is not None
                where = task.node.spec.name
                self.run.evictions.append(Eviction(task.job.spec.uid, task.uid, where, action, for_job.spec.uid))
            elif task.status is S.ALLOCATED:
                self.run.bind(task)

    def discard(self, to: int = 0) -> None:
        while len(self.steps) > to:
            what, task = self.steps.pop()
            if what == "evict":
                task.status = S.RUNNING  # for scorers it stays gone
            else:
                self.run.unplace(task)
