"""Parse our pods on Kubernetes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from hekla.backends.base import Observation, PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.domain.phases import PodPhase

_TERMINATED_BY_SIGTERM = 143
_OVER = ("Succeeded", "Failed")
ObjectName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PodState:
    """The cached state of a pod. `object_name`: its namespace and name. `version`: only grows on the server.

    `is_stopping`: its end was requested. `is_deleted`: the server no longer has it. `freezes`: its working folder
    outlives it if it fails.
    """

    object_name: ObjectName
    uid: str
    version: int
    node: str
    address: str
    observation: Observation
    is_stopping: bool = False
    is_deleted: bool = False
    freezes: bool = False

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.object_name[0]

    @property
    def name(self) -> str:
        """Its name in its namespace."""
        return self.object_name[1]

    @property
    def key(self) -> PodKey:
        """Its key."""
        return self.observation.key

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    @property
    def is_bound(self) -> bool:
        """Whether it has a node."""
        return bool(self.node)

    @property
    def leaves_claim(self) -> bool:
        """Whether the claim of its working folder must be deleted with it: it did not fail by itself."""
        last = self.observation
        return self.freezes and not (last.phase is PodPhase.FAILED and last.reason != "Stopped" and last.exit_code)

    @property
    def is_started(self) -> bool:
        """Whether its start is complete. The start of a created but unbound pod was interrupted."""
        return self.is_bound or self.observation.phase.is_final

    def as_deleted(self, now: datetime) -> "PodState":
        """Its state after its deletion by us or others: its end if it is known, otherwise lost."""
        if self.observation.phase.is_final:
            return replace(self, is_deleted=True)
        lost = Observation(self.key, PodPhase.LOST, now, "Deleted", "The pod was deleted in the cluster.")
        return replace(self, is_deleted=True, observation=lost)


def parse_pod(pod: Json) -> PodState | None:
    """The state of the pod, or None if it is not ours."""
    meta = pod["metadata"]
    try:
        key = names.key_of(meta.get("labels") or {})
    except (KeyError, ValueError):
        return None
    node = pod["spec"].get("nodeName", "")
    annotations = meta.get("annotations") or {}
    return PodState(
        object_name=(meta["namespace"], meta["name"]),
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        node=node,
        address=annotations.get(names.ADDRESS, ""),
        observation=parse_observation(pod, key),
        is_stopping=names.STOPPED in annotations or "deletionTimestamp" in meta,
        freezes=names.FREEZES in annotations,
    )


def is_active(pod: Json) -> bool:
    """Whether the pod has not ended and is not stopping."""
    annotations = pod["metadata"].get("annotations") or {}
    return names.STOPPED not in annotations and pod["status"].get("phase") not in _OVER


def parse_observation(pod: Json, key: PodKey) -> Observation:
    """The observation of the pod, from its phase and the state of its container."""
    status = pod.get("status") or {}
    stopped = (pod["metadata"].get("annotations") or {}).get(names.STOPPED)
    created = _instant(pod["metadata"]["creationTimestamp"])
    if status.get("phase") in _OVER:
        return _ended(key, status, stopped, created)
    if stopped is not None and not pod["spec"].get("nodeName"):
        return Observation(key, PodPhase.FAILED, created, "Stopped", stopped, None)
    state = _state(status)
    if "running" in state or status.get("phase") == "Running":
        return Observation(key, PodPhase.RUNNING, _at(state.get("running"), "startedAt", created))
    waiting = state.get("waiting") or {}
    message = ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
    return Observation(key, PodPhase.PREPARING, created, message=message[:500])


def _ended(key: PodKey, status: Json, stopped: str | None, created: datetime) -> Observation:
    end = _state(status).get("terminated") or {}
    at, code = _at(end, "finishedAt", _last_change(status, created)), end.get("exitCode")
    if status["phase"] == "Succeeded":
        return Observation(key, PodPhase.SUCCEEDED, at, exit_code=code or 0)
    if stopped is not None and (code is None or status.get("reason") == "DeadlineExceeded"):
        code = _TERMINATED_BY_SIGTERM if code is None else code
        return Observation(key, PodPhase.FAILED, at, "Stopped", stopped, code)
    disrupted = _disruption(status) if code is None else {}
    reason = status.get("reason") or end.get("reason") or disrupted.get("reason") or "Error"
    message = status.get("message") or end.get("message") or disrupted.get("message") or _exit_message(code)
    return Observation(key, PodPhase.FAILED, at, reason, str(message)[-500:], code)


def _state(status: Mapping[str, Any]) -> dict[str, Any]:
    containers = status.get("containerStatuses") or ()
    return next((one.get("state") or {} for one in containers if one.get("name") == names.MAIN), {})


def _exit_message(code: int | None) -> str:
    return "Its node did not tell how it ended" if code is None else f"Its process ended with exit code {code}"


def _disruption(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The condition with the reason why the cluster ended the pod, for pods whose node reported no end."""
    conditions = status.get("conditions") or ()
    return next((one for one in conditions if one.get("type") == "DisruptionTarget"), {})


def _last_change(status: Mapping[str, Any], created: datetime) -> datetime:
    """The time of the last change of conditions: the end of a pod whose container does not report one."""
    return max((_at(one, "lastTransitionTime", created) for one in status.get("conditions") or ()), default=created)


def _at(entry: Mapping[str, Any] | None, name: str, otherwise: datetime) -> datetime:
    text = (entry or {}).get(name)
    return _instant(text) if text else otherwise


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def missing_log(error: Exception, pod: PodState) -> bytes:
    """The replacement for a log that the node does not have; empty while a log may still appear."""
    return f"[hekla] The log cannot be read: {error}\n".encode() if pod.observation.phase.is_final else b""
