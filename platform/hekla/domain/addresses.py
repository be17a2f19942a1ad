"""Addresses: what the address of a replica is made from, and the host name of a published port."""

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


def port_host(job: str, port: str, domain: str) -> str:
    """The host name of a job's port for users. `job`: its uid in hexadecimal digits, so no two ports share a host."""
    return f"{job}-{port}.{domain}"
