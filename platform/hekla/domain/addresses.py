"""The facts that determine the address of a replica, and the host name of a published port."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of a job.

    `job`: the job's uid in hexadecimal digits; `name`: the job's name. `slot`: a number that all attempts of this
    replica share, and no other live replica has.
    """

    job: str
    name: str
    task: str
    index: int
    slot: int


def port_host(job: str, port: str, domain: str) -> str:
    """The host name of a job's port for users. `job`: its uid in hexadecimal digits, so no two ports share a host."""
    return f"{job}-{port}.{domain}"
