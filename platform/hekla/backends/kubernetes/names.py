"""Names and labels of our objects; every process finds them by these."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from hekla.backends.base import PodKey
from hekla.domain.addresses import Replica

SCHEDULER = "hekla"
MAIN = "main"
"""Our container in a pod; a cluster may add others."""
_PREFIX = "hekla.dev/"
CLUSTER, TENANT, JOB = f"{_PREFIX}cluster", f"{_PREFIX}tenant", f"{_PREFIX}job"
TASK, INDEX, ATTEMPT = f"{_PREFIX}task", f"{_PREFIX}index", f"{_PREFIX}attempt"
STOPPED = f"{_PREFIX}stopped"
"""The reason to stop a pod. A pod with this annotation that is not bound yet is never bound."""
ADDRESS = f"{_PREFIX}address"
FREEZES = f"{_PREFIX}freezes"
"""On pods whose working folder is a claim of their own, which outlives them if they fail."""
TASK_LABEL = f"{_PREFIX}label-"
"""The beginning of names for labels of tasks in a namespace that tenants share."""
CLOSED = f"{_PREFIX}closed"
"""On pods that accept connections only from their job: other network policies of the namespace must exclude them."""

_CLAIM = re.compile(r"job-(?P<job>[0-9a-f]{32})-(?P<volume>.+)")


def labels(cluster: str, key: PodKey) -> dict[str, str]:
    """The labels of a pod and its objects."""
    own = {TASK: key.task, INDEX: str(key.index), ATTEMPT: str(key.attempt)}
    return {**job_labels(cluster, key.job), **own, **({TENANT: tenant(key.tenant)} if key.tenant else {})}


def job_labels(cluster: str, job: str) -> dict[str, str]:
    """The labels of all objects of a job."""
    return {CLUSTER: cluster, JOB: job}


def tenant(slug: str) -> str:
    """A tenant's name in labels and names of objects, which allow fewer characters than its short name."""
    safe = re.sub("[^a-z0-9-]", "-", slug.lower()).strip("-")
    return slug if safe == slug else f"{safe or 't'}-{digest(slug)}"


def digest(text: str) -> str:
    """A short hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def key_of(found: Mapping[str, str]) -> PodKey:
    """The pod with these labels; its tenant is named as in labels. Raises KeyError, ValueError if it is not ours."""
    return PodKey(found[JOB], found[TASK], int(found[INDEX]), int(found[ATTEMPT]), tenant=found.get(TENANT, ""))


def is_own_label(name: str) -> bool:
    """Whether this label is one of Hekla's own."""
    return name.startswith(_PREFIX)


def belongs_to(found: Mapping[str, Any], cluster: str) -> bool:
    """Whether we created this object for that cluster."""
    return bool((found["metadata"].get("labels") or {}).get(CLUSTER) == cluster)


def selector(labels: Mapping[str, str]) -> str:
    """A label selector of the API."""
    return ",".join(f"{name}={value}" for name, value in labels.items())


def address_of(replica: Replica) -> str:
    """The DNS name of a pod within its namespace, whatever the cluster's domain is.

    Its first part is the pod's host name (`host_of`), the same as Volcano's. It contains the job's unique id instead of
    its name, because several jobs may have the same name.
    """
    return f"{replica.name}-{replica.task}-{replica.index}.{service_of(replica.job)}"


def host_of(address: str) -> str:
    """The host name of a pod with this address; other pods of its job can use it too."""
    return address.partition(".")[0]


def claim_of(job: str, volume: str) -> str:
    """The name of the claim that we create for this volume of a job."""
    return f"{service_of(job)}-{volume}"


def work_claim_of(key: PodKey) -> str:
    """The name of the claim for the working folder of a pod that outlives it."""
    return f"work-{key.name}"


def volume_of(claim: str) -> tuple[str, str] | None:
    """The job and its volume for which we create a claim of this name; None if we create none of such a name."""
    found = _CLAIM.fullmatch(claim)
    return (found["job"], found["volume"]) if found else None


def ingress_of(job: str, port: str) -> str:
    """The name of the Ingress for a port of a job."""
    return f"port-{job}-{port}"


def service_of(job: str) -> str:
    """The name of the headless service that gives the pods of a job their DNS names."""
    return f"job-{job}"
