"""External pods as the engine's input: what their PodGroup says beside the minimum, and their claims to devices.

Labels of external pods differ from pod to pod, and each combination of labels is a class of pods of its own for the
engine. So it gets only the labels that the sub-group policies of the group name.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hekla.apps.jobs.models import Job, Pod
from hekla.domain.cluster_objects import external_scope
from hekla.domain.external_pods import GroupKind, GroupRef
from hekla.domain.jobspec import JobSpec
from hekla.engine import model
from hekla.engine.pod_objects import label_selector
from hekla.engine.scenario import sub_group_policy


def object_scope(job: Job) -> str:
    """The namespace under which objects for the job's pods are reported."""
    return external_scope(GroupRef.of(job.external.key).namespace)


def names_no_resources(job: Job, spec: JobSpec) -> bool:
    """Whether the job is that of a PodGroup without minResources, which Volcano admits at once."""
    return not spec.min_resources and GroupRef.of(job.external.key).kind is GroupKind.POD_GROUP


def minimums(job: Job) -> Mapping[str, int]:
    """The minimum of each role, by role."""
    found: Mapping[str, int] = job.external.roles
    return found


def sub_groups(job: Job) -> tuple[model.SubGroupPolicy, ...]:
    """The sub-group policies of the group."""
    return tuple(map(sub_group_policy, job.external.sub_groups))


def label_names(job: Job) -> frozenset[str]:
    """The labels that the sub-group policies name."""
    return frozenset(name for policy in job.external.sub_groups for name in _names(policy))


def _names(policy: Mapping[str, Any]) -> Iterator[str]:
    yield from policy.get("matchLabelKeys", ())
    yield from (one.key for one in label_selector(policy.get("labelSelector")) or ())


def labels(pod: Pod, names: frozenset[str]) -> Mapping[str, str]:
    """Those labels of the pod that have one of these names."""
    found = pod.external.labels if _exists(pod) else {}
    return {name: value for name, value in found.items() if name in names}


def name(pod: Pod) -> str:
    """The name of the pod in its cluster, if it is known, else empty."""
    found: str = pod.external.name if _exists(pod) else ""
    return found


def has_labels(pod: Pod) -> bool:
    """Whether the pod has labels in its cluster."""
    return _exists(pod) and bool(pod.external.labels)


def priority(pod: Pod, job: Job) -> int:
    """The priority of the pod: its own, if it is known. That of the job can be its PodGroup's."""
    own: int | None = pod.external.priority if _exists(pod) else None
    return job.priority if own is None else own


def volume_claims(pod: Pod) -> Sequence[str]:
    """The names of the claims to volumes that the pod mounts."""
    found: Sequence[str] = pod.external.volume_claims if _exists(pod) else ()
    return found


def _exists(pod: Pod) -> bool:
    """Whether the pod has an object in the cluster: pods of simulations have none. Its objects were read with it."""
    return Pod._meta.get_field("external").is_cached(pod)
