"""From objects of Kubernetes to what the controller knows."""

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
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of a pod. `place`: its namespace and its name there. `version` only grows, as the server counts;
    `is_stopping`: it was asked to end; `is_gone`: the server has it no more.
    """

    place: Place
    uid: str
    version: int
    node: str
    address: str
    observation: Observation
    is_stopping: bool = False
    is_gone: bool = False

    @property
    def namespace(self) -> str:
        """In which it is."""
        return self.place[0]

    @property
    def name(self) -> str:
        """By which it is known there."""
        return self.place[1]

    @property
    def key(self) -> PodKey:
        """Which pod it is."""
        return self.observation.key

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    @property
    def is_bound(self) -> bool:
        """Whether a node has it."""
        return bool(self.node)

    @property
    def has_begun(self) -> bool:
        """One that is made and not bound yet is not started: who started it did not come to the end."""
        return self.is_bound or self.observation.phase.is_final

    def gone(self, now: datetime) -> "Seen":
        """It was deleted, by us or by somebody else: what does not show how it ended is lost."""
        if self.observation.phase.is_final:
            return replace(self, is_gone=True)
        lost = Observation(self.key, PodPhase.LOST, now, "Deleted", "Somebody deleted the pod from the cluster.")
        return replace(self, is_gone=True, observation=lost)


def seen(pod: Json) -> Seen | None:
    """What is so with this pod; None: it is not ours."""
    meta = pod["metadata"]
    try:
        key = names.key_of(meta.get("labels") or {})
    except (KeyError, ValueError):
        return None
    node = pod["spec"].get("nodeName", "")
    annotations = meta.get("annotations") or {}
    return Seen(
        place=(meta["namespace"], meta["name"]),
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        node=node,
        address=annotations.get(names.ADDRESS, ""),
        observation=observation(pod, key),
        is_stopping=names.STOPPED in annotations or "deletionTimestamp" in meta,
    )


def is_to_go_on(pod: Json) -> bool:
    """Nobody has asked yet that it end, and it has not."""
    annotations = pod["metadata"].get("annotations") or {}
    return names.STOPPED not in annotations and pod["status"].get("phase") not in _OVER


def observation(pod: Json, key: PodKey) -> Observation:
    """By the phase and by how its container stands."""
    status = pod.get("status") or {}
    stopped = (pod["metadata"].get("annotations") or {}).get(names.STOPPED)
    made = _instant(pod["metadata"]["creationTimestamp"])
    if status.get("phase") in _OVER:
        return _ended(key, status, stopped, made)
    if stopped is not None and not pod["spec"].get("nodeName"):
        return Observation(key, PodPhase.FAILED, made, "Stopped", stopped, None)
    state = _state(status)
    if "running" in state or status.get("phase") == "Running":
        return Observation(key, PodPhase.RUNNING, _at(state.get("running"), "startedAt", made))
    waiting = state.get("waiting") or {}
    message = ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
    return Observation(key, PodPhase.PREPARING, made, message=message[:500])


def _ended(key: PodKey, status: Json, stopped: str | None, made: datetime) -> Observation:
    end = _state(status).get("terminated") or {}
    at, code = _at(end, "finishedAt", _last_change(status, made)), end.get("exitCode")
    if status["phase"] == "Succeeded":
        return Observation(key, PodPhase.SUCCEEDED, at, exit_code=code or 0)
    if stopped is not None and (code is None or status.get("reason") == "DeadlineExceeded"):
        code = _TERMINATED_BY_SIGTERM if code is None else code
        return Observation(key, PodPhase.FAILED, at, "Stopped", stopped, code)
    disrupted = _disruption(status) if code is None else {}
    reason = status.get("reason") or end.get("reason") or disrupted.get("reason") or "Error"
    message = status.get("message") or end.get("message") or disrupted.get("message") or _how(code)
    return Observation(key, PodPhase.FAILED, at, reason, str(message)[-500:], code)


def _state(status: Mapping[str, Any]) -> dict[str, Any]:
    containers = status.get("containerStatuses") or ()
    return next((one.get("state") or {} for one in containers if one.get("name") == names.MAIN), {})


def _how(code: int | None) -> str:
    return "Its node did not tell how it ended" if code is None else f"Its process ended with exit code {code}"


def _disruption(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the cluster says that it did to a pod whose node did not tell its end."""
    conditions = status.get("conditions") or ()
    return next((one for one in conditions if one.get("type") == "DisruptionTarget"), {})


def _last_change(status: Mapping[str, Any], made: datetime) -> datetime:
    """When it was last told otherwise: the end of a pod whose container does not tell its own."""
    return max((_at(one, "lastTransitionTime", made) for one in status.get("conditions") or ()), default=made)


def _at(entry: Mapping[str, Any] | None, name: str, otherwise: datetime) -> datetime:
    text = (entry or {}).get(name)
    return _instant(text) if text else otherwise


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def no_log(error: Exception, pod: Seen) -> bytes:
    """In place of a log that its node does not have: nothing as long as there may be one to come."""
    return f"[hekla] The log cannot be read: {error}\n".encode() if pod.observation.phase.is_final else b""
