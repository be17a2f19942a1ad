"""The size of the measured console."""

from dataclasses import dataclass

DAY_MINUTES = 1440


@dataclass(frozen=True, slots=True)
class OperationsSize:
    """Nodes of eight GPUs, pods of one simulated day, and the days for which measures exist in the end.

    `minutes`: how many of the day pass; with fewer, all days have that many.
    """

    nodes: int = 1000
    pods: int = 300_000
    days: int = 90
    minutes: int = DAY_MINUTES
    tenants: int = 200
    people_per_tenant: int = 4

    @property
    def queues(self) -> int:
        """Number of queues: four tenants share one."""
        return max(1, self.tenants // 4)

    @property
    def jobs(self) -> int:
        """The approximate number of jobs of the day."""
        return max(1, self.pods // 10)
