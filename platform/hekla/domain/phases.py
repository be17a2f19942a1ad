"""The phases of jobs, flows, gangs and pods: one vocabulary for rows, pages, REST and documents."""

from enum import StrEnum


class JobPhase(StrEnum):
    """The phase of a job. Volcano's phases (`volcano-spec` §1.1)."""

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
        """Nothing more happens by itself. (A person may still resume an aborted job.)"""
        return self in FINAL_JOB_PHASES


FINAL_JOB_PHASES = frozenset({JobPhase.ABORTED, JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED})
STOPPING_JOB_PHASES = frozenset({JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING})
"""The pods are being stopped, and no pod starts any more."""


class FlowPhase(StrEnum):
    """The phase of a flow of jobs.

    pending: no job has started. running: some have started, and none has failed. succeeded: all jobs completed. failed:
    a job failed or was terminated, so no further job starts. terminated: a person stopped the flow.
    """

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TERMINATED = "terminated"


class GangPhase(StrEnum):
    """The phase of a job's gang (its PodGroup) in the scheduler."""

    PENDING = "pending"
    INQUEUE = "inqueue"
    RUNNING = "running"
    UNKNOWN = "unknown"
    COMPLETED = "completed"


class PodPhase(StrEnum):
    """The phase of one attempt of one replica.

    pending: waits for a node. bound: has a node, and the decision is recorded. preparing: the node prepares it
    (environment, image). running, succeeded, failed: the state of its process. lost: its node or its record is gone, so
    its result is unknown.
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
        """The attempt has ended and holds no resources."""
        return self in FINAL_POD_PHASES

    @property
    def is_placed(self) -> bool:
        """The attempt holds resources on a node."""
        return self in PLACED_POD_PHASES


FINAL_POD_PHASES = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.LOST})
PLACED_POD_PHASES = frozenset({PodPhase.BOUND, PodPhase.PREPARING, PodPhase.RUNNING})
