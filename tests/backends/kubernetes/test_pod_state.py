"""Parsing of pods in all their states."""

from datetime import UTC, datetime
from typing import Any

import pytest

from hekla.backends.base import PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.pod_state import parse_pod
from hekla.domain.phases import PodPhase

KEY = PodKey("0123abcd", "worker", 3, 2)
MADE, BEGAN, ENDED = "2026-03-01T10:00:00Z", "2026-03-01T10:00:05Z", "2026-03-01T10:01:00Z"
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": BEGAN}}}]}


def pod(status: dict[str, Any], *, stopped: str | None = None, node: str = "n1") -> dict[str, Any]:
    annotations = {names.ADDRESS: "s7"} | ({names.STOPPED: stopped} if stopped is not None else {})
    meta = {
        "name": KEY.name, "namespace": "hekla", "uid": "u", "resourceVersion": "12", "creationTimestamp": MADE,
        "labels": names.labels("c1", KEY), "annotations": annotations,
    }  # fmt: skip
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": status}


def over(phase: str, code: int, **more: Any) -> dict[str, Any]:
    end = {"exitCode": code, "finishedAt": ENDED, "reason": more.pop("why", "Error"), **more.pop("end", {})}
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": {"terminated": end}}], **more}


PULLING = {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
PAST_DEADLINE = {"phase": "Failed", "reason": "DeadlineExceeded"}
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}
READY = {"type": "Ready", "status": "False", "lastTransitionTime": ENDED}
COLLECTED = {"type": "DisruptionTarget", "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists",
             "lastTransitionTime": ENDED}  # fmt: skip
NO_STATUS = "Its node did not tell how it ended"
BESIDE = {"name": "istio-proxy", "state": {"terminated": {"exitCode": 0, "finishedAt": MADE}}}
ENDED_BESIDE = {**over("Failed", 3), "containerStatuses": [BESIDE, *over("Failed", 3)["containerStatuses"]]}
CODE = "Its process ended with exit code"

PODS = [
    (pod({"phase": "Pending"}, node=""), PodPhase.PREPARING, "", "", None, MADE),
    (pod({"phase": "Pending", "containerStatuses": [PULLING]}),
     PodPhase.PREPARING, "", "ErrImagePull: no such image", None, MADE),
    (pod(RUNNING), PodPhase.RUNNING, "", "", None, BEGAN),
    (pod(RUNNING, stopped="Its job was aborted"), PodPhase.RUNNING, "", "", None, BEGAN),
    (pod(over("Succeeded", 0, why="Completed")), PodPhase.SUCCEEDED, "", "", 0, ENDED),
    (pod(over("Failed", 3)), PodPhase.FAILED, "Error", f"{CODE} 3", 3, ENDED),
    (pod(over("Failed", 1, end={"message": "assert n > 0"})), PodPhase.FAILED, "Error", "assert n > 0", 1, ENDED),
    (pod(over("Failed", 137, why="OOMKilled")), PodPhase.FAILED, "OOMKilled", f"{CODE} 137", 137, ENDED),
    (pod(over("Failed", 143, reason="DeadlineExceeded"), stopped="Enough"),
     PodPhase.FAILED, "Stopped", "Enough", 143, ENDED),
    (pod(PAST_DEADLINE, stopped="Enough"), PodPhase.FAILED, "Stopped", "Enough", 143, MADE),
    (pod(over("Failed", 3), stopped="Too late"), PodPhase.FAILED, "Error", f"{CODE} 3", 3, ENDED),
    (pod(EVICTED), PodPhase.FAILED, "Evicted", "The node was low on memory", None, MADE),
    (pod({**EVICTED, "conditions": [READY]}),
     PodPhase.FAILED, "Evicted", "The node was low on memory", None, ENDED),
    (pod({**RUNNING, "phase": "Failed", "conditions": [COLLECTED]}),
     PodPhase.FAILED, "DeletionByPodGC", "PodGC: node no longer exists", None, ENDED),
    (pod({"phase": "Failed"}), PodPhase.FAILED, "Error", NO_STATUS, None, MADE),
    (pod(ENDED_BESIDE), PodPhase.FAILED, "Error", f"{CODE} 3", 3, ENDED),
    (pod({"phase": "Pending"}, stopped="Not wanted", node=""), PodPhase.FAILED, "Stopped", "Not wanted", None, MADE),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "phase", "reason", "message", "code", "at"), PODS)
def test_state_of_a_pod_is_parsed(manifest, phase, reason, message, code, at) -> None:
    found = parse_pod(manifest)
    assert found is not None
    observed = found.observation
    assert (observed.key, observed.phase, observed.reason, observed.message) == (KEY, phase, reason, message)
    assert (observed.exit_code, observed.at) == (code, datetime.fromisoformat(at).astimezone(UTC))
    assert (found.address, found.version) == ("s7", 12)


@pytest.mark.parametrize("labels", [{}, {names.JOB: "x"}, {**names.labels("c1", KEY), "hekla.dev/index": "one"}])
def test_foreign_pod_is_ignored(labels) -> None:
    manifest = pod(RUNNING)
    manifest["metadata"]["labels"] = labels
    assert parse_pod(manifest) is None


def test_deleted_running_pod_is_lost_and_ended_pod_keeps_its_result() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    running, ended = parse_pod(pod(RUNNING)), parse_pod(pod(over("Failed", 3)))
    assert running is not None
    assert ended is not None
    assert (running.as_deleted(now).observation.phase, running.as_deleted(now).observation.at) == (PodPhase.LOST, now)
    assert ended.as_deleted(now).observation == ended.observation
