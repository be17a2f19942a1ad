"""The size of the measured cluster."""

from dataclasses import dataclass

POD_COUNT = 10
"""Pods of a job."""


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """The numbers of nodes, of running pods, and of those that change between two reconciliations."""

    nodes: int = 10_000
    pods: int = 100_000
    changed: int = 1000

    @property
    def jobs(self) -> int:
        """The number of running jobs."""
        return max(1, self.pods // POD_COUNT)

    @property
    def changed_jobs(self) -> int:
        """Jobs that end, and as many that are submitted, between two reconciliations."""
        return max(1, self.changed // POD_COUNT)

    @property
    def changed_nodes(self) -> int:
        """Nodes that change between two reconciliations: the same part as of the pods."""
        return max(1, self.nodes * self.changed // self.pods)
