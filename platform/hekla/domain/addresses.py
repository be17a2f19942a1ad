"""One replica of a task, before it has a pod: what its address is made from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replica:
    """Which replica of which job it is.

    `job`: the job's uid in hexadecimal digits; `name`: what people call the job. `slot`: a number that this replica
    has for all its attempts, and no other that lives.
    """

    job: str
    name: str
    task: str
    index: int
    slot: int
