"""The size of the measured console."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of rows. `pods_per_job`: average; jobs have from about a tenth to five times as many."""

    jobs: int = 100_000
    pods_per_job: int = 10
    tenants: int = 200
    nodes: int = 1000
    people_per_tenant: int = 4

    @property
    def queues(self) -> int:
        """Number of queues: four tenants share one."""
        return max(1, self.tenants // 4)
