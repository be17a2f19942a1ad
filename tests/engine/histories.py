"""A random history of a cluster: jobs arrive, pods end, nodes come and go, and each cycle's decisions are applied."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tests.engine.clusters import amounts

from hekla.domain.phases import GangPhase
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec
from hekla.engine.policy import SchedulerPolicy

HOLDING = (PodStatus.RUNNING, PodStatus.BOUND, PodStatus.RELEASING)
MAX_NODES, MAX_JOBS = 6, 14


class History:
    """`state` is the input of the next cycle. Evicted pods end at once or a cycle later, and are created again."""

    def __init__(self, seed: int, policy: SchedulerPolicy) -> None:
        self.dice, self.policy = Random(seed), policy
        self.numbers = iter(range(10**9))
        self.state = ClusterState(
            tuple(self._node() for _ in range(self.dice.randint(2, MAX_NODES))), self._queues(), ()
        )

    def run_with_changes(self, cycles: int) -> Iterator[tuple[ClusterState, Decisions]]:
        """Run this many cycles, each after random changes of the cluster."""
        for _ in range(cycles):
            self._change_cluster()
            yield self.run_cycle()

    def run_without_changes(self, cycles: int) -> Iterator[tuple[ClusterState, Decisions]]:
        """Run this many cycles in which only the engine's decisions change the cluster."""
        for _ in range(cycles):
            yield self.run_cycle()

    def run_cycle(self) -> tuple[ClusterState, Decisions]:
        """Run one cycle and apply its decisions; its input and its decisions."""
        decisions = self.decide(self.state)
        assert not decisions.faults
        state = self.state
        self.state = replace(state, jobs=tuple(self._after_decisions(job, decisions) for job in state.jobs))
        return state, decisions

    def decide(self, state: ClusterState) -> Decisions:
        """The engine's decisions."""
        return cycle(state, self.policy, 0.0, is_detailed=True)

    # Changes of the cluster.

    def _change_cluster(self) -> None:
        jobs = [job for job in self.state.jobs if job.pods]
        jobs = [self._with_ended_pods(job) for job in jobs]
        jobs = [job for job in jobs if not all(task.status is PodStatus.SUCCEEDED for task in job.pods)]
        if len(jobs) < MAX_JOBS:
            jobs += [self._job() for _ in range(self.dice.choice([0, 0, 1, 1, 2]))]
        nodes = list(self.state.nodes)
        if self.dice.random() < 0.1 and len(nodes) < MAX_NODES:
            nodes.append(self._node())
        if self.dice.random() < 0.07 and len(nodes) > 1:
            gone = nodes.pop(self.dice.randrange(len(nodes)))
            jobs = [self._without_node(job, gone) for job in jobs]
        self.state = replace(self.state, nodes=tuple(nodes), jobs=tuple(jobs))

    def _with_ended_pods(self, job: PodGroupSpec) -> PodGroupSpec:
        """The job after some running pods succeeded or failed; a failed pod is created again."""
        tasks = []
        for task in job.pods:
            if task.status is PodStatus.RUNNING and self.dice.random() < 0.12:
                failed = self.dice.random() < 0.2
                tasks.append(self._restarted(task) if failed else replace(task, status=PodStatus.SUCCEEDED, node=""))
            else:
                tasks.append(task)
        return replace(job, pods=tuple(tasks))

    def _without_node(self, job: PodGroupSpec, node: NodeSpec) -> PodGroupSpec:
        tasks = tuple(self._restarted(task) if task.node == node.name else task for task in job.pods)
        return replace(job, pods=tasks)

    def _restarted(self, task: PodSpec) -> PodSpec:
        uid = f"{task.name}#{next(self.numbers)}"
        return replace(task, uid=uid, status=PodStatus.PENDING, node="", nominated_node="")

    def _after_decisions(self, job: PodGroupSpec, decisions: Decisions) -> PodGroupSpec:
        bound = {bind.pod: bind.node for bind in decisions.binds}
        evicted = {eviction.pod for eviction in decisions.evictions}
        tasks = []
        for task in job.pods:
            if task.uid in bound:
                tasks.append(replace(task, status=PodStatus.RUNNING, node=bound[task.uid], nominated_node=""))
            elif task.status is PodStatus.RELEASING:
                tasks.append(self._restarted(task))
            elif task.uid in evicted:
                is_slow = self.dice.random() < 0.5
                tasks.append(replace(task, status=PodStatus.RELEASING) if is_slow else self._restarted(task))
            else:
                nominated = decisions.nominated.get(task.uid, task.nominated_node)
                tasks.append(replace(task, nominated_node=nominated))
        return replace(job, pods=tuple(tasks), phase=decisions.phases[job.uid])

    # Random objects.

    def _node(self) -> NodeSpec:
        dice = self.dice
        size = amounts(dice.randint(2, 8), dice.randint(4, 24), dice.choice([4, 110, 110]))
        return NodeSpec(f"n{next(self.numbers):05}", size, labels={"zone": dice.choice("xy")})

    def _queues(self) -> tuple[QueueSpec, ...]:
        dice = self.dice
        return tuple(
            QueueSpec(
                f"q{at}",
                weight=dice.randint(1, 4),
                capability=dice.choice([None, None, amounts(dice.randint(4, 12), dice.randint(8, 32))]),
                guarantee=dice.choice([None, None, amounts(dice.randint(1, 2), dice.randint(1, 2))]),
                reclaimable=dice.random() < 0.9,
            )
            for at in range(dice.randint(1, 3))
        )

    def _job(self) -> PodGroupSpec:
        dice, number = self.dice, next(self.numbers)
        pods, priority = dice.randint(1, 5), dice.randint(0, 2)
        request = amounts(dice.choice([0.5, 1, 1, 2]), dice.choice([0.5, 1, 2, 4]))
        least = dice.randint(1, pods)
        conditions = {"node_selector": dice.choice([{}, {}, {}, {"zone": "x"}]), "preemptable": dice.random() < 0.9}
        names = [f"j{number:05}-w-{at}" for at in range(pods)]
        return PodGroupSpec(
            uid=f"j{number:05}",
            name=f"j{number:05}",
            queue=dice.choice(self.state.queues).name,
            priority=priority,
            min_available=least,
            min_task_member={"w": least},
            min_resources=request * least,
            phase=GangPhase.PENDING,
            created_at=float(number),
            pods=tuple(PodSpec(name, name, "w", request, priority=priority, **conditions) for name in names),
        )
