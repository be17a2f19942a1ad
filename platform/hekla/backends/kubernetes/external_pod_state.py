"""Parse external pods and their PodGroups."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.nodes import parse_amounts, requested_resources
from hekla.domain import pod_annotations
from hekla.domain.errors import Invalid
from hekla.domain.external_pods import ExternalPod, GroupKind, GroupPolicy, GroupRef, PodGroup, role_name
from hekla.domain.formats import placement
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.runtime_settings import HOST_PORT
from hekla.domain.network_topology import MAX_TIER, TopologyMode
from hekla.domain.phases import PodPhase
from hekla.domain.task_spec import TaskSpec

_GROUP = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
_JOB_NAME = "training.kubeflow.org/job-name"
_SPARK_APPLICATION = "spark-app-selector"
_SPARK_NAME = "spark-app-name"
_QUEUE = "scheduling.volcano.sh/queue-name"
_ROLES = (
    "volcano.sh/task-spec",
    "training.kubeflow.org/replica-type",
    "spark-role",
    "role",
    "app.kubernetes.io/component",
    "component",
)
_CONDITION, _WAITS = "PodScheduled", "Unschedulable"
MAX_MESSAGE = 500
_TOLERATED_BY_ALL = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Taints that the API server makes every pod tolerate for a while. Hekla places no pods on such nodes anyway."""
_CONSTRAINTS = {"tolerations", "affinity", "host_ports", "resource_claims"}
_CLAIM = {"resourceClaimName": "resource_claim_name", "resourceClaimTemplateName": "resource_claim_template_name"}
MAX_LABELS = 64
MAX_SUB_GROUPS = 100
MAX_VOLUME_CLAIMS = 100
_MOST_NAME = 253
"""The limit for names of objects; annotations may be longer."""


def parse_external_pod(pod: Json, *, may_claim: bool = False) -> ExternalPod:
    """The state of an external pod. `may_claim`: whether Hekla allocates devices in this cluster."""
    meta, spec = pod["metadata"], pod["spec"]
    request = {name: text for name, text in requested_resources(spec).quantities().items() if name != "pods"}
    constraints, obstacle = _placement(spec)
    annotations = _annotations(meta)
    maker = _controller(meta)
    return ExternalPod(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        group=_group(meta, maker),
        made_at=_instant(meta["creationTimestamp"]),
        role=role_name(next(_annotations_or_labels(meta, _ROLES), "pod")),
        application=str((meta.get("labels") or {}).get(_SPARK_NAME, "")),
        maker=maker.get("uid", ""),
        image=str(spec["containers"][0].get("image", "")),
        request=request,
        node_selector=spec.get("nodeSelector") or {},
        placement={**constraints, **({"annotations": annotations} if annotations else {})},
        labels=dict(sorted((meta.get("labels") or {}).items())[:MAX_LABELS]),
        volume_claims=_volume_claims(meta["name"], spec)[:MAX_VOLUME_CLAIMS],
        priority=int(spec.get("priority") or 0),
        never_preempts=spec.get("preemptionPolicy") == "Never",
        queue=next(_annotations_or_labels(meta, (_QUEUE,)), ""),
        node=spec.get("nodeName", ""),
        is_ending="deletionTimestamp" in meta,
        obstacle=_obstacle(meta["name"], spec, may_claim=may_claim) or obstacle,
        reported_reason=_waiting_reason(pod.get("status") or {}),
        **_phase_facts(pod),
    )


def _annotations_or_labels(meta: Json, names: Iterable[str]) -> Iterator[str]:
    """The values of the annotations and labels with these names, in this order, annotations first."""
    sources = (meta.get("annotations") or {}, meta.get("labels") or {})
    return (source[name] for name in names for source in sources if source.get(name))


def _annotations(meta: Json) -> Mapping[str, str]:
    """Its annotations that plugins of the scheduler read. Whether it may be evicted can be a label too."""
    labels = {name: text for name, text in (meta.get("labels") or {}).items() if name == pod_annotations.PREEMPTABLE}
    return pod_annotations.select_valid({**labels, **(meta.get("annotations") or {})})


def _controller(meta: Json) -> Json:
    owners = meta.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def _group(meta: Json, maker: Json) -> GroupRef:
    namespace, labels = meta["namespace"], meta.get("labels") or {}
    if name := next(_annotations_or_labels(meta, _GROUP), "") or labels.get(_GROUP_LABEL, ""):
        return GroupRef(namespace, GroupKind.POD_GROUP, name[:_MOST_NAME])
    if name := labels.get(_JOB_NAME, ""):
        return GroupRef(namespace, GroupKind.JOB_NAME, name, maker.get("uid", ""))
    if name := labels.get(_SPARK_APPLICATION, ""):  # unique; its executors belong to the driver, which has no owner
        return GroupRef(namespace, GroupKind.JOB_NAME, name)
    if maker:
        return GroupRef(namespace, GroupKind.OWNER, maker["name"], maker["uid"])
    return GroupRef(namespace, GroupKind.POD, meta["name"], meta["uid"])


def _volume_claims(pod: str, spec: Json) -> list[str]:
    """The claims that the pod names, and those that the cluster makes for the pod's own volumes."""
    found = []
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            found.append(str(claim["claimName"]))
        elif volume.get("ephemeral"):
            found.append(f"{pod}-{volume['name']}")
    return list(dict.fromkeys(found))


def _obstacle(pod: str, spec: Json, *, may_claim: bool) -> str:
    """A message about requirements that the engine does not support; empty if none. Ignoring them would place the pod
    on a wrong node.
    """
    affinity, required = spec.get("affinity") or {}, "requiredDuringSchedulingIgnoredDuringExecution"
    unsupported = {
        "scheduling gates": spec.get("schedulingGates"),
        "a required affinity to other pods": any(
            (affinity.get(part) or {}).get(required) for part in ("podAffinity", "podAntiAffinity")
        ),
        "a strict topology spread": any(
            one.get("whenUnsatisfiable") != "ScheduleAnyway" for one in spec.get("topologySpreadConstraints") or ()
        ),
        "resource claims, because the cluster's configuration does not set “devices”,": not may_claim
        and spec.get("resourceClaims"),
        f"more than {MAX_VOLUME_CLAIMS} claims to volumes": len(_volume_claims(pod, spec)) > MAX_VOLUME_CLAIMS,
    }
    found = [name for name, is_required in unsupported.items() if is_required]
    return f"Hekla does not place pods with {' or '.join(found)}." if found else ""


def _placement(spec: Json) -> tuple[Json, str]:
    """The tolerations, the node affinity, the ports of the node and the claims as fields of a task, and a message if a
    task cannot have them.
    """
    tolerations = [one for one in spec.get("tolerations") or () if one.get("key") not in _TOLERATED_BY_ALL]
    nodes = (spec.get("affinity") or {}).get("nodeAffinity")
    ports = [
        {name: port[field] for name, field in HOST_PORT.items() if port.get(field)}
        for container in spec["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]
    claims = [
        {"name": one["name"], **{ours: one[theirs] for theirs, ours in _CLAIM.items() if one.get(theirs)}}
        for one in spec.get("resourceClaims") or ()
    ]
    if not (tolerations or nodes or ports or claims):
        return {}, ""
    findings = Findings()
    fields = Fields({"tolerations": tolerations, "affinity": {"nodeAffinity": nodes}}, "", findings)
    try:
        task = TaskSpec(name="pod", image="pod", host_ports=ports, resource_claims=claims, **placement.read(fields, ""))
        findings.raise_any()
    except (ValidationError, Invalid):
        return {}, "Hekla does not place pods with such tolerations, node affinity, claims or ports of the node."
    if findings.ignored:
        return {}, f"Hekla does not place pods with this field: {findings.ignored[0]}"
    return task.model_dump(mode="json", include=_CONSTRAINTS, exclude_defaults=True), ""


def _waiting_reason(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == _CONDITION and condition.get("status") == "False":
            return str(condition.get("message", ""))
    return ""


def unschedulable_condition(message: str, now: datetime) -> Json:
    """The status patch that reports why a pod is pending."""
    condition = {
        "type": _CONDITION,
        "status": "False",
        "reason": _WAITS,
        "message": message[:MAX_MESSAGE],
        "lastTransitionTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"status": {"conditions": [condition]}}


def _phase_facts(pod: Json) -> dict[str, Any]:
    """The phase, its time, and how the pod ended."""
    status, node = pod.get("status") or {}, pod["spec"].get("nodeName")
    created, phase = _instant(pod["metadata"]["creationTimestamp"]), status.get("phase")
    states = [one.get("state") or {} for one in status.get("containerStatuses") or ()]
    if phase in ("Succeeded", "Failed"):
        return _ended(status, [state["terminated"] for state in states if "terminated" in state], created)
    if phase == "Running":
        began = [
            _instant(state["running"]["startedAt"]) for state in states if (state.get("running") or {}).get("startedAt")
        ]
        return {"phase": PodPhase.RUNNING, "at": min(began, default=created)}
    waiting: Json = next((state["waiting"] for state in states if "waiting" in state), {})
    message = ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
    return {"phase": PodPhase.PREPARING if node else PodPhase.PENDING, "at": created, "message": message[:MAX_MESSAGE]}


def _ended(status: Json, ends: list[Json], created: datetime) -> dict[str, Any]:
    bad = [end for end in ends if end.get("exitCode")]
    decisive = (bad or ends or [{}])[0]
    at = max((_instant(end["finishedAt"]) for end in ends if end.get("finishedAt")), default=None)
    changes = [one["lastTransitionTime"] for one in status.get("conditions") or () if one.get("lastTransitionTime")]
    at = at or max(map(_instant, changes), default=created)
    if status["phase"] == "Succeeded":
        return {"phase": PodPhase.SUCCEEDED, "at": at, "exit_code": 0}
    reason = status.get("reason") or decisive.get("reason") or "Error"
    message = status.get("message") or decisive.get("message") or ""
    return {
        "phase": PodPhase.FAILED,
        "at": at,
        "reason": str(reason),
        "message": str(message)[-MAX_MESSAGE:],
        "exit_code": decisive.get("exitCode"),
    }


def parse_pod_group(group: Json) -> PodGroup:
    """The fields of a PodGroup that Hekla uses. Its priority is that of its class."""
    spec, meta = group.get("spec") or {}, group["metadata"]
    return PodGroup(
        namespace=meta["namespace"],
        name=meta["name"],
        minimum=max(1, int(spec.get("minMember") or 1)),
        queue=str(spec.get("queue") or ""),
        phase=str((group.get("status") or {}).get("phase") or ""),
        request=_of_nodes(spec.get("minResources") or {}),
        policy=_policy(spec),
        priority_class=str(spec.get("priorityClassName") or ""),
    )


def _policy(spec: Json) -> GroupPolicy:
    members = spec.get("minTaskMember") or {}
    sub_groups = spec.get("subGroupPolicy") or ()
    return GroupPolicy(
        roles={role_name(name): int(least) for name, least in members.items() if int(least) > 0},
        topology=_topology(spec.get("networkTopology")),
        sub_groups=tuple(_sub_group(one) for one in sub_groups[:MAX_SUB_GROUPS]),
    )


def _topology(topology: Json | None) -> Json:
    """As a NetworkTopologySpec; empty for none. A number of a tier counts before its name."""
    if topology is None:
        return {}
    found: Json = {"mode": TopologyMode.SOFT if topology.get("mode") == TopologyMode.SOFT else TopologyMode.HARD}
    if (tier := topology.get("highestTierAllowed")) is not None:
        return found | {"highest_tier_allowed": min(int(tier), MAX_TIER)}
    return found | ({"highest_tier_name": name} if (name := str(topology.get("highestTierName") or "")) else {})


def _sub_group(policy: Json) -> Json:
    """The fields of a sub-group policy that the engine reads."""
    fields = ("name", "labelSelector", "matchLabelKeys", "subGroupSize", "minSubGroups", "networkTopology")
    return {field: policy[field] for field in fields if policy.get(field) is not None}


def _of_nodes(amounts: Mapping[str, str]) -> Mapping[str, str]:
    """The amounts that nodes have. Volcano's controllers add amounts for namespace quotas, such as requests.cpu."""
    of_quotas = ("requests.", "limits.", "count/")
    found = parse_amounts({name: text for name, text in amounts.items() if not name.startswith(of_quotas)})
    return {name: text for name, text in found.quantities().items() if name != "pods"}


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
