"""What holds for every job, in whatever order things happen to it."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.domain.lifecycle.worlds import World, spec
from tests.support.examples import examples

from hekla.domain.errors import Invalid
from hekla.domain.lifecycle import TRANSITIONS, ActionTarget, JobFacts, PodRef, stage_of
from hekla.domain.lifecycle.facts import Slot
from hekla.domain.phases import FINAL_JOB_PHASES, GangPhase, JobPhase, PodPhase
from hekla.domain.policies import POLICY_ACTIONS, LifecycleAction

EVENTS = st.sampled_from(["PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "*"])
POLICIES = st.lists(
    st.builds(
        lambda event, action: {"events": [event], "action": str(action)},
        EVENTS,
        st.sampled_from([action for action in POLICY_ACTIONS if action is not LifecycleAction.RESUME_JOB]),
    ),
    max_size=1,
)
TASKS = st.integers(1, 3).flatmap(
    lambda replicas: st.fixed_dictionaries(
        {"replicas": st.just(replicas), "policies": POLICIES, "max_retry": st.sampled_from([1, 2])},
        optional={"min_available": st.integers(0, replicas)},
    )
)
WAITS = st.sampled_from([None, "all", "any"])
NEXT = {
    PodPhase.PENDING: [PodPhase.BOUND, PodPhase.FAILED],
    PodPhase.BOUND: [PodPhase.PREPARING, PodPhase.RUNNING, PodPhase.FAILED, PodPhase.LOST],
    PodPhase.PREPARING: [PodPhase.RUNNING, PodPhase.FAILED, PodPhase.LOST],
    PodPhase.RUNNING: [PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.LOST],
}
COMMANDS = [
    LifecycleAction.ABORT_JOB,
    LifecycleAction.RESUME_JOB,
    LifecycleAction.TERMINATE_JOB,
    LifecycleAction.COMPLETE_JOB,
    LifecycleAction.RESTART_JOB,
]


def _names(count):
    return [f"task{place}" for place in range(count)]


class AnyJob(RuleBasedStateMachine):
    """Pods live and die, the scheduler admits and evicts, people command; in any order."""

    @initialize(tasks=st.lists(TASKS, min_size=1, max_size=3), waits=WAITS, policies=POLICIES, data=st.data())
    def submit(self, tasks, waits, policies, data):
        tasks = [
            {**task, "depends_on": {"tasks": names, "iteration": waits}} if waits and (names := _names(place)) else task
            for place, task in enumerate(tasks)
        ]
        total = sum(task["replicas"] for task in tasks)
        fields = data.draw(
            st.fixed_dictionaries(
                {"max_retry": st.integers(1, 2)},
                optional={"min_available": st.integers(1, total), "min_success": st.integers(1, total)},
            )
        )
        self.world = World(spec(*tasks, policies=policies, **fields))
        self.final: JobPhase | None = None

    def living(self) -> list[PodRef]:
        return sorted(ref for ref, pod in self.world.pods.items() if pod.is_alive)

    def watch(self) -> None:
        """Remember a final phase that was reached, and see that it stays."""
        if self.final is not None:
            assert self.world.job.phase is self.final
        self.final = self.world.job.phase if self.world.job.phase in FINAL_JOB_PHASES else None

    @precondition(lambda self: self.world.job.phase in (JobPhase.PENDING, JobPhase.RUNNING))
    @rule()
    def scheduler_admits(self):
        self.world.admit()
        self.watch()

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def pod_changes(self, data):
        ref = data.draw(st.sampled_from(self.living()))
        phase = data.draw(st.sampled_from(NEXT[self.world.pods[ref].phase]))
        self.world.report(phase, [ref], exit_code=1 if phase is PodPhase.FAILED else None)
        self.watch()

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def scheduler_evicts(self, data):
        self.world.evict(data.draw(st.sampled_from(self.living())))
        self.watch()

    @rule(action=st.sampled_from(COMMANDS), by_person=st.booleans())
    def person_commands(self, action, by_person):
        if (self.world.job.phase, action) in TRANSITIONS:
            if action is LifecycleAction.RESUME_JOB:
                self.final = None
            self.world.do(action, by_person=by_person)
            self.watch()

    @rule(data=st.data(), action=st.sampled_from([LifecycleAction.RESTART_TASK, LifecycleAction.RESTART_POD]))
    def part_is_restarted(self, data, action):
        if (self.world.job.phase, action) in TRANSITIONS:
            task = data.draw(st.sampled_from(self.world.job.spec.tasks))
            self.world.do(action, ActionTarget(task.name, data.draw(st.integers(0, task.replicas - 1))))
            self.watch()

    @precondition(lambda self: self.world.job.phase not in FINAL_JOB_PHASES - {JobPhase.ABORTED})
    @rule(data=st.data())
    def person_scales(self, data):
        task = data.draw(st.sampled_from(self.world.job.spec.tasks))
        replicas = data.draw(st.integers(1, 4))
        size = {"tasks": {task.name: {"replicas": replicas, "min_available": data.draw(st.integers(0, replicas))}}}
        restarts, version = self.world.job.retry_count, self.world.job.version
        try:
            self.world.scale(**size)
        except Invalid:
            return  # the job as a whole cannot do with so few
        assert (self.world.job.retry_count, self.world.job.version) == (restarts, version)
        self.watch()

    @rule()
    def look_again(self):
        self.world.sync()
        again = self.world.sync()
        assert (again.steps, again.stop, again.create) == ((), (), ())
        self.watch()

    @invariant()
    def one_attempt_at_a_time(self):
        slots = [ref.slot for ref in self.living()]
        assert len(slots) == len(set(slots))

    @invariant()
    def a_job_that_runs_has_something_that_runs_or_will(self):
        """Never are all its pods at an end, with others held back that nothing will release."""
        if self.world.job.phase is JobPhase.RUNNING and self.world.job.gang_phase is not GangPhase.PENDING:
            assert self.living()

    @invariant()
    def retries_are_bounded(self):
        assert self.world.job.retry_count <= self.world.job.spec.max_retry

    @invariant()
    def nothing_is_left_running_when_all_is_over(self):
        if self.world.job.phase in FINAL_JOB_PHASES:
            assert all(self.world.pods[ref].stopping for ref in self.living())

    @invariant()
    def pods_beyond_the_replicas_are_leaving(self):
        wanted = {(task.name, index) for task in self.world.job.spec.tasks for index in range(task.replicas)}
        beyond = [pod for ref, pod in self.world.pods.items() if (ref.task, ref.index) not in wanted]
        assert all(pod.stopping for pod in beyond)

    @invariant()
    def a_job_at_work_has_a_pod_for_each_replica(self):
        """But for those that wait for other tasks, or whose last attempt still ends."""
        job, pods = self.world.job, list(self.world.pods.values())
        if job.phase in (JobPhase.PENDING, JobPhase.RUNNING) and job.gang_phase is not GangPhase.PENDING:
            have = {ref.slot for ref in self.living()} | {pod.slot for pod in pods if not pod.stopping}
            wanted = {Slot(task.name, index) for task in job.spec.tasks for index in range(task.replicas)}
            assert wanted - stage_of(job, pods).held <= have

    def teardown(self):
        """From wherever it is: when the scheduler admits and pods do their work, the job comes to an end."""
        if not hasattr(self, "world"):
            return
        for _ in range(30):
            if self.world.job.phase in FINAL_JOB_PHASES:
                return
            self.world.admit()
            for ref in self.living():
                if self.world.pods[ref].is_alive:
                    self.world.report(PodPhase.SUCCEEDED, [ref])
        raise AssertionError(f"still {self.world.job.phase}")


AnyJob.TestCase.settings = settings(max_examples=examples(120), stateful_step_count=40, deadline=None)
TestAnyJob = AnyJob.TestCase


def test_a_job_whose_pods_have_all_ended_is_over():
    """Also when nobody looked in between."""
    world = World(spec({"replicas": 2}))
    world.job = JobFacts(world.job.spec, gang_phase=GangPhase.RUNNING)
    world.admit()
    world.report(PodPhase.FAILED, world.all_latest(), exit_code=1)
    assert world.job.phase is JobPhase.FAILED
