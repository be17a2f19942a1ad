"""Ports of a job that people outside of its cluster reach: each has a host of its own."""


def host(job: str, port: str, domain: str) -> str:
    """Under which one is found. `job`: its uid in hexadecimal digits, so no two ports of any jobs share a host."""
    return f"{job}-{port}.{domain}"
