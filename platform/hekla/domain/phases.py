"""The phases of jobs, flows, gangs and pods: one vocabulary for rows, pages, REST and documents."""

from enum import StrEnum


class JobPhase(StrEnum):
    """Where a job stands. Volcano's phases (`volcano-spec` §1.1)."""

    PENDING = "pending"
    ABORTING = "aborting"
    ABORTED = "aborted"
    RUNNING = "running"
    RESTARTING = "restarting"
    COMPLETING = "completing"
    COMPLETED = "completed"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Nothing more happens by itself (an aborted job may still be resumed by a person)."""
        return self in FINAL_JOB_PHASES


FINAL_JOB_PHASES = frozenset({JobPhase.ABORTED, JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED})


class FlowPhase(StrEnum):
    """Where a flow of jobs stands.

    pending: no job of it has begun. running: some have, and none went wrong. succeeded: all jobs completed. failed: one
    did not, so nothing more is begun. terminated: a person stopped it.
    """

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TERMINATED = "terminated"


class GangPhase(StrEnum):
    """Where a job's gang (its PodGroup) stands with the scheduler."""

    PENDING = "pending"
    INQUEUE = "inqueue"
    RUNNING = "running"
    UNKNOWN = "unknown"
    COMPLETED = "completed"


class PodPhase(StrEnum):
    """Where one attempt of one replica stands.

    pending: waits for a place. bound: has a node, and the decision is recorded. preparing: the node gets it
    ready (environment, image). running, succeeded, failed: as its process says. lost: its node or its record
    is gone and nobody can tell how it ended.
    """

    PENDING = "pending"
    BOUND = "bound"
    PREPARING = "preparing"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"

    @property
    def is_final(self) -> bool:
        """The attempt is over and holds nothing."""
        return self in FINAL_POD_PHASES

    @property
    def is_placed(self) -> bool:
        """The attempt holds resources on a node."""
        return self in PLACED_POD_PHASES


FINAL_POD_PHASES = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.LOST})
PLACED_POD_PHASES = frozenset({PodPhase.BOUND, PodPhase.PREPARING, PodPhase.RUNNING})
