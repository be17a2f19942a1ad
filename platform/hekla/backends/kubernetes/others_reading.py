"""From pods that others made to what is known of them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.nodes import amounts, asked
from hekla.domain.external_pods import ExternalPod, GroupKind, GroupRef, PodGroup, role_name
from hekla.domain.phases import PodPhase

_GROUP = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
_JOB_NAME = "training.kubeflow.org/job-name"
_QUEUE = "scheduling.volcano.sh/queue-name"
_ROLES = ("volcano.sh/task-spec", "training.kubeflow.org/replica-type", "role", "app.kubernetes.io/component")
_CONDITION, _WAITS = "PodScheduled", "Unschedulable"
MOST = 500
_MOST_NAME = 253
"""Of objects; annotations may say more."""


def others_pod(pod: Json) -> ExternalPod:
    """What is so with this pod."""
    meta, spec = pod["metadata"], pod["spec"]
    request = {name: text for name, text in asked(spec).quantities().items() if name != "pods"}
    maker = _controller(meta)
    return ExternalPod(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        group=_group(meta, maker),
        made_at=_instant(meta["creationTimestamp"]),
        role=role_name(next(_told(meta, _ROLES), "pod")),
        maker=maker.get("uid", ""),
        image=str(spec["containers"][0].get("image", "")),
        request=request,
        node_selector=spec.get("nodeSelector") or {},
        priority=int(spec.get("priority") or 0),
        never_preempts=spec.get("preemptionPolicy") == "Never",
        queue=next(_told(meta, (_QUEUE,)), ""),
        node=spec.get("nodeName", ""),
        is_ending="deletionTimestamp" in meta,
        obstacle=_obstacle(spec),
        reported_reason=_waits(pod.get("status") or {}),
        **_standing(pod),
    )


def _told(meta: Json, names: Iterable[str]) -> Iterator[str]:
    """What annotations say, else labels."""
    places = (meta.get("annotations") or {}, meta.get("labels") or {})
    return (place[name] for name in names for place in places if place.get(name))


def _controller(meta: Json) -> Json:
    owners = meta.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def _group(meta: Json, maker: Json) -> GroupRef:
    namespace, labels = meta["namespace"], meta.get("labels") or {}
    if name := next(_told(meta, _GROUP), "") or labels.get(_GROUP_LABEL, ""):
        return GroupRef(namespace, GroupKind.POD_GROUP, name[:_MOST_NAME])
    if name := labels.get(_JOB_NAME, ""):
        return GroupRef(namespace, GroupKind.JOB_NAME, name, maker.get("uid", ""))
    if maker:
        return GroupRef(namespace, GroupKind.OWNER, maker["name"], maker["uid"])
    return GroupRef(namespace, GroupKind.POD, meta["name"], meta["uid"])


def _obstacle(spec: Json) -> str:
    """What the pod asks for that our engine is not told of: to ignore it would put it where it cannot be."""
    affinity, required = spec.get("affinity") or {}, "requiredDuringSchedulingIgnoredDuringExecution"
    asked_for = {
        "scheduling gates": spec.get("schedulingGates"),
        "a required affinity": any((part or {}).get(required) for part in affinity.values()),
        "a strict topology spread": any(
            one.get("whenUnsatisfiable") != "ScheduleAnyway" for one in spec.get("topologySpreadConstraints") or ()
        ),
        "resource claims": spec.get("resourceClaims"),
        "ports of its node": any(port.get("hostPort") for one in spec["containers"] for port in one.get("ports") or ()),
    }
    found = [name for name, there in asked_for.items() if there]
    return f"Hekla does not place pods with {' or '.join(found)}." if found else ""


def _waits(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == _CONDITION and condition.get("status") == "False":
            return str(condition.get("message", ""))
    return ""


def condition(message: str, now: datetime) -> Json:
    """The change of a pod's status that says why it waits."""
    told = {
        "type": _CONDITION,
        "status": "False",
        "reason": _WAITS,
        "message": message[:MOST],
        "lastTransitionTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"status": {"conditions": [told]}}


def _standing(pod: Json) -> dict[str, Any]:
    """Phase, since when, and how it ended."""
    status, node = pod.get("status") or {}, pod["spec"].get("nodeName")
    made, phase = _instant(pod["metadata"]["creationTimestamp"]), status.get("phase")
    states = [one.get("state") or {} for one in status.get("containerStatuses") or ()]
    if phase in ("Succeeded", "Failed"):
        return _ended(status, [state["terminated"] for state in states if "terminated" in state], made)
    if phase == "Running":
        began = [
            _instant(state["running"]["startedAt"]) for state in states if (state.get("running") or {}).get("startedAt")
        ]
        return {"phase": PodPhase.RUNNING, "at": min(began, default=made)}
    waiting: Json = next((state["waiting"] for state in states if "waiting" in state), {})
    message = ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
    return {"phase": PodPhase.PREPARING if node else PodPhase.PENDING, "at": made, "message": message[:MOST]}


def _ended(status: Json, ends: list[Json], made: datetime) -> dict[str, Any]:
    bad = [end for end in ends if end.get("exitCode")]
    told = (bad or ends or [{}])[0]
    at = max((_instant(end["finishedAt"]) for end in ends if end.get("finishedAt")), default=None)
    changes = [one["lastTransitionTime"] for one in status.get("conditions") or () if one.get("lastTransitionTime")]
    at = at or max(map(_instant, changes), default=made)
    if status["phase"] == "Succeeded":
        return {"phase": PodPhase.SUCCEEDED, "at": at, "exit_code": 0}
    reason = status.get("reason") or told.get("reason") or "Error"
    message = status.get("message") or told.get("message") or ""
    return {
        "phase": PodPhase.FAILED,
        "at": at,
        "reason": str(reason),
        "message": str(message)[-MOST:],
        "exit_code": told.get("exitCode"),
    }


def pod_group(group: Json) -> PodGroup:
    """What stands in it."""
    spec, meta = group.get("spec") or {}, group["metadata"]
    return PodGroup(
        namespace=meta["namespace"],
        name=meta["name"],
        minimum=max(1, int(spec.get("minMember") or 1)),
        queue=str(spec.get("queue") or ""),
        phase=str((group.get("status") or {}).get("phase") or ""),
        request=amounts(spec.get("minResources") or {}).quantities(),
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
