"""The state of one cycle: placements and evictions, tentative and decided (`volcano-spec` §3.4)."""

from tests.engine.reference.amounts import at_most
from tests.engine.reference.plugin_functions import PluginFunctions
from tests.engine.reference.state import Job, Node, ReferenceState, S, Task

from hekla.domain.phases import GangPhase
from hekla.engine.decisions import Bind, Eviction
from hekla.engine.model import ClusterState, PodStatus
from hekla.engine.policy import SchedulerPolicy


class Session:
    def __init__(self, state: ClusterState, policy: SchedulerPolicy) -> None:
        self.state, self.policy = ReferenceState(state), policy
        self.plugins = PluginFunctions(self.state, policy)
        self.binds: list[Bind] = []
        self.evictions: list[Eviction] = []
        self.nominated: dict[str, str] = {}
        self.looked_at: set[str] = set()

    def valid_jobs(self) -> list[Job]:
        return [job for job in self.state.jobs if job.phase is not GangPhase.PENDING and self.plugins.is_valid(job)]

    def node_named(self, name: str) -> Node | None:
        return next((node for node in self.state.nodes if node.spec.name == name), None)

    def best(self, task: Task, nodes: list[Node]) -> Node | None:
        """The node with the highest score; of equal ones the first by name."""
        by_name = sorted(nodes, key=lambda node: node.spec.name)
        return max(by_name, key=lambda node: self.plugins.score(task, node, nodes), default=None)

    def fits_on(self, task: Task, node: Node) -> bool:
        """Whether plugins allow the node, and it has room now or after pending releases."""
        return not self.plugins.refuses(task, node) and at_most(task.request, node.future)

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
    """Tentative operations, to be committed or discarded."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.steps: list[tuple[str, Task]] = []

    def place(self, task: Task, node: Node) -> None:
        has_room = at_most(task.request, node.idle)
        self.session.place(task, node, S.ALLOCATED if has_room else S.PIPELINED)
        self.steps.append(("place", task))

    def promise(self, task: Task, node: Node) -> None:
        self.session.place(task, node, S.PIPELINED)
        self.steps.append(("place", task))

    def evict(self, task: Task) -> None:
        task.status, task.is_evicted = S.RELEASING, True
        self.steps.append(("evict", task))

    def commit(self, action: str, for_job: Job) -> None:
        for operation, task in self.steps:
            if operation == "evict":
                assert task.node is not None
                node_name = task.node.spec.name
                self.session.evictions.append(
                    Eviction(task.job.spec.uid, task.uid, node_name, action, for_job.spec.uid)
                )
            elif task.status is S.ALLOCATED:
                self.session.bind(task)

    def discard(self, to: int = 0) -> None:
        while len(self.steps) > to:
            operation, task = self.steps.pop()
            if operation == "evict":
                task.status = S.RUNNING  # is_evicted stays: scorers do not count it
            else:
                self.session.unplace(task)
