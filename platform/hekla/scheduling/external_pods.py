"""External pods as the engine's input: what their PodGroup says beside the minimum, and their claims to devices.

Labels of external pods differ from pod to pod, and each combination of labels is a class of pods of its own for the
engine. So it gets only the labels that the sub-group policies of the group name.
"""

from collections.abc import Iterator, Mapping
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
    return {name: value for name, value in pod.external.labels.items() if name in names}
