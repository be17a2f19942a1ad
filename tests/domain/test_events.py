"""The kinds of events in the event log, and their serialization."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hekla.domain import events
from hekla.domain.errors import Invalid
from hekla.domain.phases import JobPhase, PodPhase


def test_event_kinds_have_the_names_in_old_logs():
    assert set(events.kinds()) == set(EXAMPLES)


def test_events_survive_serialization():
    for kind, payload in EXAMPLES.items():
        event = events.parse(kind, payload)
        assert event.kind == kind
        assert event.payload() == payload
        assert events.parse(kind, json.loads(json.dumps(event.payload()))) == event


@given(st.text(), st.one_of(st.none(), st.integers()))
def test_any_message_is_stored_as_json(message, code):
    event = events.PodPhaseChanged(
        task="ps", index=0, attempt=1, old=PodPhase.RUNNING, new=PodPhase.FAILED, message=message, exit_code=code
    )
    written = json.dumps(event.payload(), ensure_ascii=False).encode()
    assert b"\\u0000" not in written
    assert events.parse(event.kind, json.loads(written)) == event


@pytest.mark.parametrize("kind", events.kinds())
def test_unknown_fields_are_refused(kind):
    with pytest.raises(Invalid) as raised:
        events.parse(kind, {**EXAMPLES[kind], "colour": "red"})
    assert [problem.path for problem in raised.value.problems] == ["colour"]


def test_unknown_kind_is_named():
    with pytest.raises(events.UnknownEventKind, match="JobPainted"):
        events.parse("JobPainted", {})


def test_long_message_is_truncated():
    event = events.JobPhaseChanged(old=JobPhase.RUNNING, new=JobPhase.FAILED, message="x" * 100_000)
    assert len(event.message) == events.MAX_MESSAGE
    assert event.message.endswith("…")


def test_too_large_payload_is_refused():
    with pytest.raises(ValidationError, match="exceeds 32 KiB"):
        events.JobUnschedulable(reasons=({"text": "x" * 40_000},))


def test_events_are_immutable():
    event = events.PodPhaseChanged(task="ps", index=0, attempt=1, old=PodPhase.BOUND, new=PodPhase.RUNNING)
    with pytest.raises(ValidationError):
        event.index = 3


_NAMED = {"name": "a"}
_POD = {"task": "ps", "index": 0, "attempt": 1}
_SHIFT = {"before": 1, "after": 0.5}
_CHANGED = {"name": "a", "changes": {"weight": {"old": 1, "new": 2}}}
ALERT = {
    **{"name": "node down", "about": "n1 (sim)", "measure": "node_not_ready", "value": 1.0, "comparison": "above"},
    **{"threshold": 0.0, "clear": 0.0},
}
EXAMPLES = {
    "BatchEnded": {
        "name": "lr", "completed": 4, "failed": 1, "stopped": 1, "best": "lr-3", "metric": "loss", "value": 0.25,
    },
    "BatchRetried": {"name": "lr", "jobs": 2},
    "BatchStopped": {"name": "lr", "jobs": 5},
    "BatchSubmitted": {"name": "lr", "batch_kind": "sweep", "jobs": 6},
    "ClusterChanged": _CHANGED,
    "ClusterCreated": {"name": "here", "backend": "local"},
    "ClusterHealthChanged": {"name": "far", "reachable": False, "problem": "silent", "message": "Connection refused"},
    "ClusterKeyAdded": {"name": "far", "server": "https://far:6443", "holder": "hekla", "fingerprint": "00ff:11ee"},
    "ClusterKeyRemoved": {"name": "far", "fingerprint": "00ff:11ee"},
    "ClusterRemoved": _NAMED,
    "DemonstrationEnded": _NAMED,
    "SimulatedTeamsRemoved": _NAMED,
    "DemonstrationStarted": _NAMED,
    "EnvironmentChanged": _CHANGED,
    "EnvironmentCreated": _NAMED,
    "FlowDeleted": _NAMED,
    "FlowPhaseChanged": {"old": "pending", "new": "running"},
    "FlowStarted": {"name": "nightly", "steps": 3},
    "FlowStepStarted": {"step": "train", "job": "5d3a1f0e-8f0c-4d0e-9a5d-6f5b0c1e7a42", "name": "nightly-train"},
    "FlowStepRefused": {"step": "train", "message": "Queue default is closed."},
    "FlowStopped": _NAMED,
    "GangPhaseChanged": {"old": "pending", "new": "inqueue"},
    "JobAutoscaled": {"task": "worker", "old": 2, "new": 3, "utilization": 91.0, "target": 70, "revision": 2},
    "JobChanged": {"changes": {"priority": {"old": 1, "new": 2}}},
    "JobCommanded": {"action": "AbortJob"},
    "JobViewSaved": {"name": "Failed", "tenant": "lab"},
    "JobViewDeleted": {"name": "Failed", "tenant": "lab"},
    "OverviewArranged": {"figures": ["useful", "alerts"]},
    "JobListConfigured": {"columns": ["phase", "queue"], "default_view": "Failed"},
    "JobDeleted": _NAMED,
    "JobCleanedUp": {},
    "LogsPurged": {"jobs": 3},
    "HistoryPurged": {"jobs": 3, "events": 120},
    "JobTagged": {"tag": "odd", "is_on": False},
    "JobPhaseChanged": {"old": "pending", "new": "running"},
    "JobSubmitted": {"name": "digits", "queue": "default"},
    "JobTemplateChanged": {"name": "train", "fields": ["queue"]},
    "JobTemplateCreated": _NAMED,
    "JobTemplateDeleted": _NAMED,
    "TemplatePublished": {"title": "a", "version": 2},
    "TemplateWithdrawn": {"title": "a"},
    "JobCreatedFromTemplate": {"template": "u", "title": "a", "version": 2},
    "PresetSaved": _NAMED,
    "PresetRenamed": {**_NAMED, "old": "before"},
    "PresetDefaultChanged": {**_NAMED, "is_default": True},
    "PresetDeleted": _NAMED,
    "JobUnschedulable": {"reasons": [{"cause": "capacity"}], "text": "No node has 8 GPUs."},
    "JobDelayed": {"message": "exceeded quota: hekla"},
    "LeaseAcquired": {"epoch": 3, "holder": "worker-1"},
    "MemberAdded": {"username": "alice", "role": "member"},
    "MemberRemoved": {"username": "alice"},
    "MemberRoleChanged": {"username": "alice", "old": "member", "new": "admin"},
    "NodeChanged": {"node": "n1", "ready": True},
    "NodeLabelled": {"node": "n1", "labels": {"fast-disk": "yes"}, "removed": ["slow"]},
    "NodeDrained": {"node": "n1", "reason": "a new power supply", "pods": 3, "jobs": 2},
    "ClusterObjectsChanged": {"kinds": ["ResourceClaim"]},
    "PodBound": {**_POD, "node": "n1"},
    "PodCreated": _POD,
    "PodPhaseChanged": {**_POD, "old": "bound", "new": "running"},
    "PodStopRequested": {**_POD, "reason": "AbortJob"},
    "PodEvictionBlocked": {**_POD, "message": "Cannot evict pod"},
    "FileUploaded": {**_POD, "path": "data/words.txt", "size": 12, "sha256": "ab12"},
    "PodFrozen": {**_POD, "until": "2026-01-02T03:04:05Z", "size": 4096},
    "FrozenPodExtended": {**_POD, "until": "2026-01-02T03:04:05Z"},
    "FrozenPodOpened": {**_POD, "debug_job": "6f1c", "name": "debug-a-1"},
    "FrozenPodReleased": {**_POD, "reason": "time"},
    "TerminalOpened": {**_POD, "terminal": "6f1c"},
    "TerminalJoined": {**_POD, "terminal": "6f1c", "owner": "alice"},
    "TerminalEnded": {**_POD, "terminal": "6f1c", "reason": "exit", "exit_code": 0, "seconds": 12.5},
    "SshOpened": {**_POD, "connection": "6f1c"},
    "SshEnded": {**_POD, "connection": "6f1c", "reason": "closed", "commands": 3, "forwards": 1, "seconds": 12.5},
    "SessionOpened": {**_POD, "session": "6f1c", "tool": "port", "port": 8080},
    "GuestInvited": {
        **_POD,
        "guest": "6f1c",
        "tool": "terminal",
        "person": "bob",
        "role": "peer",
        "expires_at": "2026-08-01T12:00:00Z",
    },
    "GuestAccepted": {**_POD, "guest": "6f1c", "tool": "terminal", "owner": "alice", "role": "peer"},
    "GuestEnded": {**_POD, "guest": "6f1c", "tool": "terminal", "person": "bob", "reason": "revoked"},
    "JobForked": {**_POD, "name": "talk-2", "fork": "7a2d"},
    "RecordingStarted": {**_POD, "recording": "6f1c", "owner": "alice"},
    "RecordingCut": {**_POD, "recording": "6f1c", "source": "7a2d"},
    "RecordingDeleted": {**_POD, "recording": "6f1c", "owner": "alice"},
    "SessionEnded": {**_POD, "session": "6f1c", "tool": "port", "owner": "alice", "reason": "closed"},
    "SessionIdleWarned": {
        **_POD, "session": "6f1c", "tool": "port", "owner": "alice", "idle_since": "2026-11-20T08:00:00+00:00",
        "ends_at": "2026-11-20T10:30:00+00:00", "evidence": [{"signal": "cpu", "limit": 20.0, "most": 2.5}],
    },
    "SessionKeepRequested": {
        **_POD, "session": "6f1c", "tool": "port", "until": "2026-11-20T12:00:00+00:00", "reason": "waits for data",
    },
    "ReportCreated": {"name": "use"},
    "ReportChanged": {"name": "use", "changes": {"hour": {"old": 8, "new": 9}}},
    "ReportDeleted": {"name": "use"},
    "ReportDispatched": {"name": "use", "recipients": 2, "left_out": 1},
    "ReportStopped": {"name": "use", "reason": "hidden"},
    "AlertRuleCreated": {"name": "node down"},
    "AlertRuleChanged": {"name": "node down", "changes": {"threshold": {"old": 0, "new": 1}}},
    "AlertRuleDeleted": {"name": "node down"},
    "AlertRuleSilenced": {"name": "node down", "until": "2026-01-01T00:00:00+00:00", "reason": "maintenance"},
    "AlertRuleSecretRenewed": {"name": "node down"},
    "AlertFired": {**ALERT, "severity": "critical"},
    "AlertCleared": {**ALERT, "reason": "clear"},
    "AlertActed": {"name": "node down", "about": "n1 (sim)", "action": "cordon", "moment": "clear", "error": "No."},
    "AnnouncementCreated": {"name": "Maintenance", "level": "warning"},
    "AnnouncementDeleted": {"name": "Maintenance"},
    "AlertActionVetoed": {"name": "node down", "about": "n1 (sim)", "action": "cordon"},
    "IdlePolicyChanged": {"changes": {"idle_minutes": {"old": 120, "new": 60}}},
    "JobIdleAborted": {"idle_since": "2026-11-20T08:00:00+00:00", "evidence": [{"signal": "gpu", "limit": 5.0}]},
    "JobIdleWarned": {"idle_since": "2026-11-20T08:00:00+00:00", "ends_at": "2026-11-20T10:30:00+00:00"},
    "JobKeepRequested": {"until": "2026-11-20T12:00:00+00:00", "reason": "waits for data"},
    "OwnerReminded": {"cause": "stalled"},
    "PodEvicted": {
        **_POD, "action": "preempt", "node": "n1", "for_job": "6f1c", "plugins": ["gang", "drf"],
        "shares": [{"plugin": "drf", "of": "job", "giver": _SHIFT, "taker": _SHIFT}],
    },
    "PolicyChanged": {"cluster": "here", "version": 2},
    "PolicyLabStarted": {"run": "6f1c", "title": "more nodes"},
    "PolicyLabCancelled": {"run": "6f1c"},
    "PolicyLabDeleted": {"run": "6f1c"},
    "LabTraceUploaded": {"name": "jobs.txt", "format": "sacct", "jobs": 3},
    "LabTraceDeleted": {"name": "jobs.txt"},
    "QueueChanged": _CHANGED,
    "QueueClosed": _NAMED,
    "QueueDrained": _NAMED,
    "QueueCreated": _NAMED,
    "QueueOpened": _NAMED,
    "FederatedQueueChanged": _CHANGED,
    "FederatedQueueCreated": {"name": "both", "queues": ["a", "b"]},
    "FederatedQueueDeleted": _NAMED,
    "JobPlaced": {
        "federated_queue": "both", "queue": "a", "cluster": "here",
        "candidates": [{"cluster": "here", "chance": "now"}],
    },
    "JobReassigned": {"federated_queue": "both", "queue": "a", "cluster": "x", "old_queue": "b", "old_cluster": "y"},
    "ScheduleChanged": _CHANGED,
    "ScheduleCreated": {"name": "nightly", "cron": "0 2 * * *"},
    "ScheduleDeleted": _NAMED,
    "ScheduleMissed": {"first": "2027-01-01T00:00:00Z", "last": "2027-01-01T04:00:00Z", "count": 5},
    "ScheduleRunStarted": {"due_at": "2027-01-01T00:00:00Z", "job": "nightly-29979360"},
    "ScheduleResumed": _NAMED,
    "ScheduleSkipped": {"due_at": "2027-01-01T00:00:00Z", "reason": "still_running"},
    "ScheduleSuspended": _NAMED,
    "PasswordChanged": {"username": "alice"},
    "SignInLinkCreated": {"username": "alice"},
    "SignedIn": {"username": "alice", "method": "password"},
    "PriceListCreated": {"name": "2027", "begin": "2027-01-01T00:00:00+00:00"},
    "PriceListDeleted": _NAMED,
    "PriorityClassCreated": {"name": "high", "value": 100},
    "PriorityClassChanged": _CHANGED,
    "PriorityClassDeleted": _NAMED,
    "QuotaSet": {"of": "tenant", "changes": {"jobs": {"new": 3}}},
    "DepartmentCreated": _NAMED,
    "DepartmentChanged": _CHANGED,
    "TenantChanged": _CHANGED,
    "TenantCreated": _NAMED,
    "OtherSessionsRevoked": {"username": "alice", "browsers": 2},
    "SecondFactorAdded": {},
    "SecondFactorRemoved": {"username": "alice"},
    "SecurityKeyAdded": _NAMED,
    "SecurityKeyRemoved": _NAMED,
    "RecoveryCodesGenerated": {},
    "RecoveryCodeUsed": {"left": 9},
    "MailAddressChanged": {"old": "alice@example.org", "new": ""},
    "IdentityConnected": {"provider": "acme"},
    "IdentityDisconnected": {"provider": "acme"},
    "TokenCreated": {"name": "ci", "scopes": ["jobs:write"], "expires_at": "2027-01-01T00:00:00Z"},
    "TokenRevoked": _NAMED,
    "ImpersonationStarted": {"username": "alice", "reason": "Her job is lost.", "until": "2027-01-01T00:00:00Z"},
    "ImpersonationEnded": {"username": "alice"},
    "UserChanged": {"username": "alice", "changes": {}},
    "PersonInvited": {
        "email": "dora@example.org",
        "role": "member",
        "platform_role": "operator",
        "expires_at": "2027-01-01T00:00:00Z",
    },
    "InvitationResent": {"email": "dora@example.org", "expires_at": "2027-01-01T00:00:00Z"},
    "InvitationRevoked": {"email": "dora@example.org"},
    "InvitationAccepted": {"username": "dora"},
    "UserCreated": {"username": "alice"},
}  # fmt: skip
