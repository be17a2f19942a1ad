"""Links to the named ports of a job, on clusters with an ingress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.domain.addresses import port_host
from hekla.domain.phases import JobPhase


@dataclass(frozen=True, slots=True)
class PortLink:
    """The name of a port, and its URL."""

    name: str
    url: str


def of(job: Job) -> Sequence[PortLink]:
    """The links while the job runs; none if its cluster has no ingress, or an unreadable configuration of it."""
    ingress = job.cluster.config.get("ingress") if job.cluster.kind == Cluster.Kind.KUBERNETES else None
    is_there = job.phase == JobPhase.RUNNING and not job.is_external
    if not is_there or not isinstance(ingress, Mapping) or not isinstance(ingress.get("domain"), str):
        return []
    scheme = "https" if ingress.get("tls") else "http"
    names = [name for task in spec_of(job).tasks for name in task.ports]
    return [PortLink(name, f"{scheme}://{port_host(job.uid.hex, name, ingress['domain'])}/") for name in names]
