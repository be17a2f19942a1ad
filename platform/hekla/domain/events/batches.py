"""Batches and demonstrations. The subject is the batch, or the run of the demonstration."""

from hekla.domain.events.base import Event, Name


class BatchSubmitted(Event):
    name: Name
    batch_kind: Name
    jobs: int


class BatchStopped(Event):
    """A stop of this number of its jobs was requested."""

    name: Name
    jobs: int


class BatchRetried(Event):
    """This number of its jobs had failed and were submitted again."""

    name: Name
    jobs: int


class BatchEnded(Event):
    """All jobs have ended. `best`: the job with the best value of the metric; all three empty without metrics."""

    name: Name
    completed: int = 0
    failed: int = 0
    stopped: int = 0
    best: Name = ""
    metric: Name = ""
    value: float | None = None


class DemonstrationStarted(Event):
    name: Name


class DemonstrationEnded(Event):
    """All jobs of the run are over."""

    name: Name


class SimulatedTeamsRemoved(Event):
    """The simulated teams of the cluster of this name submit nothing more. Subject: the cluster."""

    name: Name
