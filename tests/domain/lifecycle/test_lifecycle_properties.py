"""Properties of the lifecycle of every job, for any order of events."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.domain.lifecycle.harness import JobHarness, spec
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
    return [f"task{number}" for number in range(count)]


class AnyJob(RuleBasedStateMachine):
    """A job with random pod changes, admissions, evictions, commands and resizes, in any order."""

    @initialize(tasks=st.lists(TASKS, min_size=1, max_size=3), waits=WAITS, policies=POLICIES, data=st.data())
    def submit(self, tasks, waits, policies, data):
        tasks = [
            {**task, "depends_on": {"tasks": names, "iteration": waits}}
            if waits and (names := _names(number))
            else task
            for number, task in enumerate(tasks)
        ]
        total = sum(task["replicas"] for task in tasks)
        fields = data.draw(
            st.fixed_dictionaries(
                {"max_retry": st.integers(1, 2)},
                optional={"min_available": st.integers(1, total), "min_success": st.integers(1, total)},
            )
        )
        self.harness = JobHarness(spec(*tasks, policies=policies, **fields))
        self.final: JobPhase | None = None

    def live_pods(self) -> list[PodRef]:
        return sorted(ref for ref, pod in self.harness.pods.items() if pod.is_alive)

    def check_final_phase(self) -> None:
        """Assert that a final phase does not change, and remember it."""
        if self.final is not None:
            assert self.harness.job.phase is self.final
        self.final = self.harness.job.phase if self.harness.job.phase in FINAL_JOB_PHASES else None

    @precondition(lambda self: self.harness.job.phase in (JobPhase.PENDING, JobPhase.RUNNING))
    @rule()
    def scheduler_admits(self):
        self.harness.admit()
        self.check_final_phase()

    @precondition(lambda self: self.live_pods())
    @rule(data=st.data())
    def pod_changes(self, data):
        ref = data.draw(st.sampled_from(self.live_pods()))
        phase = data.draw(st.sampled_from(NEXT[self.harness.pods[ref].phase]))
        self.harness.report(phase, [ref], exit_code=1 if phase is PodPhase.FAILED else None)
        self.check_final_phase()

    @precondition(lambda self: self.live_pods())
    @rule(data=st.data())
    def scheduler_evicts(self, data):
        self.harness.evict(data.draw(st.sampled_from(self.live_pods())))
        self.check_final_phase()

    @rule(action=st.sampled_from(COMMANDS), by_person=st.booleans())
    def person_commands(self, action, by_person):
        if (self.harness.job.phase, action) in TRANSITIONS:
            if action is LifecycleAction.RESUME_JOB:
                self.final = None
            self.harness.do(action, by_person=by_person)
            self.check_final_phase()

    @rule(data=st.data(), action=st.sampled_from([LifecycleAction.RESTART_TASK, LifecycleAction.RESTART_POD]))
    def restart_part(self, data, action):
        if (self.harness.job.phase, action) in TRANSITIONS:
            task = data.draw(st.sampled_from(self.harness.job.spec.tasks))
            self.harness.do(action, ActionTarget(task.name, data.draw(st.integers(0, task.replicas - 1))))
            self.check_final_phase()

    @precondition(lambda self: self.harness.job.phase not in FINAL_JOB_PHASES - {JobPhase.ABORTED})
    @rule(data=st.data())
    def person_scales(self, data):
        task = data.draw(st.sampled_from(self.harness.job.spec.tasks))
        replicas = data.draw(st.integers(1, 4))
        size = {"tasks": {task.name: {"replicas": replicas, "min_available": data.draw(st.integers(0, replicas))}}}
        restarts, version = self.harness.job.retry_count, self.harness.job.version
        try:
            self.harness.scale(**size)
        except Invalid:
            return  # too few replicas for the job's minimum
        assert (self.harness.job.retry_count, self.harness.job.version) == (restarts, version)
        self.check_final_phase()

    @rule()
    def sync_twice(self):
        self.harness.sync()
        again = self.harness.sync()
        assert (again.steps, again.stop, again.create) == ((), (), ())
        self.check_final_phase()

    @invariant()
    def each_replica_has_at_most_one_live_attempt(self):
        slots = [ref.slot for ref in self.live_pods()]
        assert len(slots) == len(set(slots))

    @invariant()
    def running_job_has_live_pods(self):
        """It never has only ended pods while others are held back forever."""
        if self.harness.job.phase is JobPhase.RUNNING and self.harness.job.gang_phase is not GangPhase.PENDING:
            assert self.live_pods()

    @invariant()
    def retries_are_bounded(self):
        assert self.harness.job.retry_count <= self.harness.job.spec.max_retry

    @invariant()
    def finished_job_has_only_stopping_pods(self):
        if self.harness.job.phase in FINAL_JOB_PHASES:
            assert all(self.harness.pods[ref].stopping for ref in self.live_pods())

    @invariant()
    def surplus_pods_are_stopping(self):
        expected = {(task.name, index) for task in self.harness.job.spec.tasks for index in range(task.replicas)}
        beyond = [pod for ref, pod in self.harness.pods.items() if (ref.task, ref.index) not in expected]
        assert all(pod.stopping for pod in beyond)

    @invariant()
    def active_job_has_a_pod_for_each_replica(self):
        """Except replicas that wait for other tasks, or whose last attempt is still stopping."""
        job, pods = self.harness.job, list(self.harness.pods.values())
        if job.phase in (JobPhase.PENDING, JobPhase.RUNNING) and job.gang_phase is not GangPhase.PENDING:
            have = {ref.slot for ref in self.live_pods()} | {pod.slot for pod in pods if not pod.stopping}
            expected = {Slot(task.name, index) for task in job.spec.tasks for index in range(task.replicas)}
            assert expected - stage_of(job, pods).held <= have

    def teardown(self):
        """From any state, the job finishes if the scheduler admits it and all pods succeed."""
        if not hasattr(self, "harness"):
            return
        for _ in range(30):
            if self.harness.job.phase in FINAL_JOB_PHASES:
                return
            self.harness.admit()
            for ref in self.live_pods():
                if self.harness.pods[ref].is_alive:
                    self.harness.report(PodPhase.SUCCEEDED, [ref])
        raise AssertionError(f"still {self.harness.job.phase}")


AnyJob.TestCase.settings = settings(max_examples=examples(120), stateful_step_count=40, deadline=None)
TestAnyJob = AnyJob.TestCase


def test_job_whose_pods_have_all_ended_is_finished():
    """Even without a sync in between."""
    harness = JobHarness(spec({"replicas": 2}))
    harness.job = JobFacts(harness.job.spec, gang_phase=GangPhase.RUNNING)
    harness.admit()
    harness.report(PodPhase.FAILED, harness.all_latest(), exit_code=1)
    assert harness.job.phase is JobPhase.FAILED
