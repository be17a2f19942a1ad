"""How our objects are named and marked, so that they are found again by whoever comes later."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from hekla.backends.base import PodKey
from hekla.domain.addresses import Replica

SCHEDULER = "hekla"
MAIN = "main"
"""The container of a pod that is ours; a cluster may put others beside it."""
_PREFIX = "hekla.dev/"
CLUSTER, TENANT, JOB = f"{_PREFIX}cluster", f"{_PREFIX}tenant", f"{_PREFIX}job"
TASK, INDEX, ATTEMPT = f"{_PREFIX}task", f"{_PREFIX}index", f"{_PREFIX}attempt"
STOPPED = f"{_PREFIX}stopped"
"""Why a pod is to end. One that has it before it is bound never will be."""
ADDRESS = f"{_PREFIX}address"
CLOSED = f"{_PREFIX}closed"
"""On pods that only those of their job are to reach: what lets others of the namespace in must leave these out."""


def labels(cluster: str, key: PodKey) -> dict[str, str]:
    """By these a pod, and what belongs to it, is found."""
    own = {TASK: key.task, INDEX: str(key.index), ATTEMPT: str(key.attempt)}
    return {**job_labels(cluster, key.job), **own, **({TENANT: tenant(key.tenant)} if key.tenant else {})}


def job_labels(cluster: str, job: str) -> dict[str, str]:
    """By these all that belongs to a job is found."""
    return {CLUSTER: cluster, JOB: job}


def tenant(slug: str) -> str:
    """How a tenant is called in labels and names of objects, which take less than its short name may have."""
    safe = re.sub("[^a-z0-9-]", "-", slug.lower()).strip("-")
    return slug if safe == slug else f"{safe or 't'}-{digest(slug)}"


def digest(text: str) -> str:
    """A few characters in place of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def key_of(told: Mapping[str, str]) -> PodKey:
    """Whose labels these are. Raises KeyError, ValueError for those of somebody else's pod.

    The tenant in it is called as in labels.
    """
    return PodKey(told[JOB], told[TASK], int(told[INDEX]), int(told[ATTEMPT]), tenant=told.get(TENANT, ""))


def is_of(found: Mapping[str, Any], cluster: str) -> bool:
    """Whether this object was made for that cluster of ours."""
    return bool((found["metadata"].get("labels") or {}).get(CLUSTER) == cluster)


def selector(wanted: Mapping[str, str]) -> str:
    """Labels as the API asks for them."""
    return ",".join(f"{name}={value}" for name, value in wanted.items())


def address_of(replica: Replica) -> str:
    """A name that the DNS of a cluster tells to all of the namespace, whatever the cluster calls its own domain.

    Its first part is what the pod calls itself (`host_of`), and what Volcano would call it. In place of the job's name
    stands what no other job has, since jobs may have one name.
    """
    return f"{replica.name}-{replica.task}-{replica.index}.{service_of(replica.job)}"


def host_of(address: str) -> str:
    """What a pod with this address calls itself, and what the others of its job may call it for short."""
    return address.partition(".")[0]


def claim_of(job: str, volume: str) -> str:
    """The claim that is made for this volume of a job."""
    return f"{service_of(job)}-{volume}"


def ingress_of(job: str, port: str) -> str:
    """What leads people from outside to a port of a job."""
    return f"port-{job}-{port}"


def service_of(job: str) -> str:
    """The headless service under which the pods of a job have their names."""
    return f"job-{job}"
