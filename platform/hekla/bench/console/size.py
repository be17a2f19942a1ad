"""How much there is in the console that is measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """`pods_per_job`: on average; a job has between one and five times as many."""

    jobs: int = 100_000
    pods_per_job: int = 10
    tenants: int = 200
    nodes: int = 1000
    people_per_tenant: int = 4

    @property
    def queues(self) -> int:
        """Four tenants share one."""
        return max(1, self.tenants // 4)
