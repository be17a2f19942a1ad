"""Each kind of event as one sentence: who did what to which object, and what changed.

A sentence is a template and the values for its places, so that a page can put a link in a place, and a file the plain
text. `{actor}` and `{object}` are places of all sentences; the others are fields of the event.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from markupsafe import escape

from hekla.apps.audit import changes
from hekla.apps.audit.alert_sentences import acted
from hekla.apps.audit.values import describe_value
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.words import kind_in_words
from hekla.domain.events import ReleaseReason, TerminalEnd, ToolSessionEnd
from hekla.domain.sharing import GuestEnd
from hekla.domain.tools import STARTED_TOOLS, Tool

Facts = Mapping[str, Any]
_MOST_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class Sentence:
    """A template, and the texts for its places."""

    template: str
    values: Mapping[str, str]

    @property
    def text(self) -> str:
        """As plain text."""
        return self.template.format_map(self.values)[:_MOST_CHARACTERS]

    def html(self, **links: SafeString) -> SafeString:
        """As HTML, with other content in some places. All texts are escaped."""
        texts = {name: escape(text) for name, text in self.values.items() if name not in links}
        return SafeString(str.format_map(escape(self.template), _Places({**texts, **links})))


class _Places(dict[str, str]):
    """The texts for the places of a template; empty for fields that events of earlier versions do not have."""

    def __missing__(self, _name: str) -> str:
        return ""


def sentence(event: LoggedEvent, object_name: str) -> Sentence:
    """The sentence about an event. `object_name`: its object in words, such as `queue vision`."""
    facts = event.payload
    template = SENTENCES.get(event.kind)
    words = _unknown(event) if template is None else str(template(event) if callable(template) else template)
    named = ((name, value) for name, value in facts.items() if f"{{{name}}}" in words)
    values = _Places({name: describe_value(event.kind, name, value) for name, value in named})
    values |= {"actor": event.who, "object": object_name, **_extra(event)}
    return Sentence(words, values)


def _extra(event: LoggedEvent) -> dict[str, str]:
    """The texts of places that are no fields."""
    facts = event.payload
    found: dict[str, str] = {}
    if "index" in facts and "task" in facts:
        found["pod"] = f"{facts['task']}-{facts['index']}"
    if "method" in facts:
        found["method"] = str(_METHODS.get(facts["method"], facts["method"]))
    if isinstance(facts.get("changes"), Mapping):
        found |= _of_changes(event.kind, facts["changes"])
    return found


def _of_changes(kind: str, changed: Mapping[str, Any]) -> dict[str, str]:
    flat = changes.flat(kind, changed)
    found = {"changes": changes.phrases(kind, changed)}
    if len(flat) == 1:
        (one,) = flat
        found |= {"field": one.label, "old": one.words(one.old), "new": one.words(one.new)}
    return found


def _unknown(event: LoggedEvent) -> str:
    """For kinds of another version of Hekla."""
    label = kind_in_words(event.kind).replace("{", "{{").replace("}", "}}")
    return _("{actor}: {label} ({object}).").replace("{label}", label)


def _changed(event: LoggedEvent) -> str:
    changed = event.payload.get("changes") or {}
    flat = changes.flat(event.kind, changed)
    if (
        len(flat) == 1
        and (event.kind != "JobChanged" or flat[0].path == "priority")
        and (single := changes.verb(flat[0]))
    ):
        return single
    return _("{actor} changed {object}: {changes}.") if flat else _("{actor} saved {object} without a change.")


def _command(event: LoggedEvent) -> str:
    words = {
        "AbortJob": _("{actor} requested to abort {object}."),
        "ResumeJob": _("{actor} requested to resume {object}."),
        "RestartJob": _("{actor} requested to restart {object}."),
        "TerminateJob": _("{actor} requested to terminate {object}."),
        "CompleteJob": _("{actor} requested to complete {object}."),
        "RestartTask": _("{actor} requested to restart task {task} of {object}."),
        "RestartPod": _("{actor} requested to restart pod {pod} of {object}."),
        "RestartPartition": _("{actor} requested to restart the partition of pod {pod} of {object}."),
        "SyncJob": _("{actor} requested to synchronize {object}."),
    }
    return words.get(event.payload.get("action", ""), _("{actor} requested the action {action} for {object}."))


def _own(own: Any, of_other: Any) -> Callable[[LoggedEvent], str]:  # noqa: ANN401  (lazy translations)
    """One template for what people do to their own account, and one for that of another person."""
    return lambda event: str(own if event.subject == f"user:{event.actor_id}" else of_other)


def _if(field: str, filled: Any, empty: Any) -> Callable[[LoggedEvent], str]:  # noqa: ANN401  (lazy translations)
    """One template for events with a value in this field, and one for the others."""
    return lambda event: str(filled if event.payload.get(field) else empty)


def _node(event: LoggedEvent) -> str:
    if not event.payload.get("present", True):
        return _("{actor} removed node {node} from {object}.")
    if not event.payload.get("schedulable", True):
        return _("{actor} cordoned node {node} of {object}.")
    if not event.payload.get("ready", True):
        return _("{actor} reported that node {node} of {object} is not ready.")
    return _("{actor} made node {node} of {object} available for pods.")


def _labelled(event: LoggedEvent) -> str:
    if not event.payload.get("removed"):
        return _("{actor} set labels of node {node} of {object}: {labels}.")
    if not event.payload.get("labels"):
        return _("{actor} removed labels of node {node} of {object}: {removed}.")
    return _("{actor} set labels of node {node} of {object}: {labels}. Removed: {removed}.")


def _release(event: LoggedEvent) -> str:
    found = {
        ReleaseReason.TIME: _("{actor} deletes the files of the failed pod {pod} of {object}: their time is over."),
        ReleaseReason.ROOM: _(
            "{actor} deletes the files of the failed pod {pod} of {object}: its tenant has no room for them."
        ),
        ReleaseReason.CLUSTER: _("{actor} cannot keep the files of the failed pod {pod} of {object} in this cluster."),
    }
    deleted = _("{actor} deleted the files of the failed pod {pod} of {object}.")
    return found.get(event.payload.get("reason", ""), deleted)


def _terminal_end(event: LoggedEvent) -> str:
    found = {
        TerminalEnd.EXIT: _("The terminal of {actor} in pod {pod} of {object} ended with exit code {exit_code}."),
        TerminalEnd.POD: _("The terminal of {actor} in pod {pod} of {object} ended with the pod or its connection."),
        TerminalEnd.CLOSED: _("{actor} ended their terminal in pod {pod} of {object}."),
        TerminalEnd.CO_OWNER: _("An invited co-owner ended the terminal of {actor} in pod {pod} of {object}."),
        TerminalEnd.IDLE: _("The terminal of {actor} in pod {pod} of {object} ended because it was idle."),
        TerminalEnd.RIGHTS: _(
            "The terminal of {actor} in pod {pod} of {object} ended because they lost the permission or signed out."
        ),
        TerminalEnd.STOPPED: _("The terminal of {actor} in pod {pod} of {object} ended when the console stopped."),
    }
    return found.get(event.payload.get("reason", ""), _("The terminal of {actor} in pod {pod} of {object} ended."))


def _ssh_end(event: LoggedEvent) -> str:
    found = {
        TerminalEnd.CLOSED: _(
            "The SSH connection of {actor} to pod {pod} of {object} ended. It ran {commands} commands."
        ),
        TerminalEnd.POD: _("The SSH connection of {actor} to pod {pod} of {object} ended with the pod."),
        TerminalEnd.IDLE: _("The SSH connection of {actor} to pod {pod} of {object} ended because it was idle."),
        TerminalEnd.RIGHTS: _(
            "The SSH connection of {actor} to pod {pod} of {object} ended, as they lost the permission or the token."
        ),
        TerminalEnd.STOPPED: _(
            "The SSH connection of {actor} to pod {pod} of {object} ended when the console stopped."
        ),
    }
    return found.get(
        event.payload.get("reason", ""), _("The SSH connection of {actor} to pod {pod} of {object} ended.")
    )


def _session_end(event: LoggedEvent) -> str:
    found = {
        ToolSessionEnd.CLOSED: _("{actor} ended the session of {owner} with pod {pod} of {object}."),
        ToolSessionEnd.POD: _("{actor} ended the session of {owner} with pod {pod} of {object}: the pod ended."),
        ToolSessionEnd.TOOL: _("{actor} ended the session of {owner} with pod {pod} of {object}: its tool ended."),
        ToolSessionEnd.IDLE: _("{actor} ended the session of {owner} with pod {pod} of {object}: it was idle."),
    }
    return found.get(event.payload.get("reason", ""), found[ToolSessionEnd.CLOSED])


def _session_begin(event: LoggedEvent) -> str:
    tool = event.payload.get("tool")
    if tool == Tool.PORT:
        return _("{actor} opened port {port} of pod {pod} of {object}.")
    sentence = _("{actor} opened {tool} in pod {pod} of {object}.")
    return sentence.replace("{tool}", Tool(tool).label) if tool in STARTED_TOOLS else sentence


def _guest_invited(event: LoggedEvent) -> str:
    if event.payload.get("tool") == "terminal":
        return _("{actor} invited {person} to a terminal in pod {pod} of {object} as {role}.")
    return _("{actor} invited {person} to {tool} in pod {pod} of {object} as {role}.")


def _guest_accepted(event: LoggedEvent) -> str:
    if event.payload.get("tool") == "terminal":
        return _("{actor} accepted an invitation to the terminal of {owner} in pod {pod} of {object}.")
    return _("{actor} accepted an invitation to {tool} of {owner} in pod {pod} of {object}.")


def _guest_ended(event: LoggedEvent) -> str:
    found = {
        GuestEnd.DECLINED: _("{actor} declined an invitation to pod {pod} of {object}."),
        GuestEnd.LEFT: _("{actor} left what was shared with them in pod {pod} of {object}."),
        GuestEnd.REVOKED: _("{actor} revoked the invitation of {person} to pod {pod} of {object}."),
        GuestEnd.EXPIRED: _("{actor} ended the invitation of {person} to pod {pod} of {object}: it expired."),
        GuestEnd.CLOSED: _(
            "{actor} ended the invitation of {person} to pod {pod} of {object}: nothing is open any more."
        ),
    }
    return found.get(event.payload.get("reason", ""), found[GuestEnd.REVOKED])


def _invited(event: LoggedEvent) -> str:
    if event.payload.get("email"):
        return _("{actor} invited {email} to {object} as {role}.")
    if event.payload.get("username"):
        return _("{actor} invited {username} to {object} as {role}.")
    return _("{actor} created an invitation link to {object} for the role {role}.")


def _mail(event: LoggedEvent) -> str:
    if not event.payload.get("new"):
        return _("{actor} stopped notifications by email to {old}.")
    if not event.payload.get("old"):
        return _("{actor} set the email address for notifications to {new}.")
    return _("{actor} changed the email address for notifications from {old} to {new}.")


def _signed_in(event: LoggedEvent) -> str:
    return (
        _("{actor} signed in from {address} ({method}).")
        if event.payload.get("address")
        else _("{actor} signed in ({method}).")
    )


_METHODS = {
    "password": gettext_lazy("password"),
    "link": gettext_lazy("sign-in link"),
    "token": gettext_lazy("access token"),
    "code": gettext_lazy("recovery code"),
}
_CREATED = gettext_lazy("{actor} created {object}.")
_DELETED = gettext_lazy("{actor} deleted {object}.")

SENTENCES: Mapping[str, Any] = {
    # jobs
    "JobSubmitted": gettext_lazy("{actor} submitted {object} to queue {queue}."),
    "JobPlaced": gettext_lazy("{actor} placed {object} in queue {queue} of cluster {cluster}."),
    "JobReassigned": gettext_lazy("{actor} moved {object} from cluster {old_cluster} to cluster {cluster}."),
    "JobCommanded": _command,
    "JobPhaseChanged": gettext_lazy("{actor} changed the state of {object} from {old} to {new}."),
    "GangPhaseChanged": gettext_lazy("{actor} changed the gang of {object} from {old} to {new}."),
    "JobUnschedulable": gettext_lazy("{actor} could not schedule {object}. {text}"),
    "JobDelayed": gettext_lazy("{actor} reported that the cluster delays {object}. {message}"),
    "JobChanged": _changed,
    "JobAutoscaled": gettext_lazy("{actor} scaled task {task} of {object} from {old} to {new} replicas."),
    "JobDeleted": _DELETED,
    "JobCleanedUp": gettext_lazy("{actor} removed the pods, files and addresses of {object}."),
    "JobIdleAborted": gettext_lazy("{actor} aborted {object}, because its GPUs were idle."),
    "JobIdleWarned": gettext_lazy("{actor} warned the owner of {object} that its GPUs are idle."),
    "JobKeepRequested": gettext_lazy("{actor} keeps {object} running, also if its GPUs are idle. Reason: {reason}"),
    "OwnerReminded": gettext_lazy("{actor} asked the owner of {object} to look at it."),
    "JobTagged": _if(
        "is_on",
        gettext_lazy("{actor} added the tag “{tag}” to {object}."),
        gettext_lazy("{actor} removed the tag “{tag}” from {object}."),
    ),
    "JobCreatedFromTemplate": gettext_lazy("{actor} created {object} from version {version} of template {title}."),
    "OverviewArranged": gettext_lazy("{actor} arranged their overview of operations."),
    "JobListConfigured": gettext_lazy("{actor} arranged their list of jobs."),
    "JobViewSaved": _if(
        "tenant",
        gettext_lazy("{actor} saved the view “{name}” of the job list for tenant {tenant}."),
        gettext_lazy("{actor} saved the view “{name}” of the job list."),
    ),
    "JobViewDeleted": gettext_lazy("{actor} deleted the view “{name}” of the job list."),
    # pods
    "PodCreated": gettext_lazy("{actor} created pod {pod} of {object}."),
    "PodBound": gettext_lazy("{actor} bound pod {pod} of {object} to node {node}."),
    "PodPhaseChanged": gettext_lazy("{actor} changed the state of pod {pod} of {object} from {old} to {new}."),
    "PodStopRequested": gettext_lazy("{actor} requested a stop of pod {pod} of {object}."),
    "PodEvicted": gettext_lazy("{actor} evicted pod {pod} of {object} from node {node}."),
    "PodEvictionBlocked": gettext_lazy(
        "{actor} could not evict pod {pod} of {object}, because of a disruption budget."
    ),
    "FileUploaded": gettext_lazy("{actor} uploaded the file {path} to pod {pod} of {object}."),
    "PodFrozen": gettext_lazy("{actor} keeps the files of the failed pod {pod} of {object} until {until}."),
    "FrozenPodExtended": gettext_lazy("{actor} keeps the files of the failed pod {pod} of {object} until {until}."),
    "FrozenPodOpened": gettext_lazy("{actor} opened the failed pod {pod} of {object} as job {name}."),
    "FrozenPodReleased": _release,
    "TerminalOpened": gettext_lazy("{actor} opened a terminal in pod {pod} of {object}."),
    "TerminalJoined": gettext_lazy("{actor} typed in the terminal of {owner} in pod {pod} of {object}."),
    "TerminalEnded": _terminal_end,
    "SshOpened": gettext_lazy("{actor} connected to pod {pod} of {object} by SSH."),
    "SshEnded": _ssh_end,
    "SessionOpened": _session_begin,
    "SessionEnded": _session_end,
    "SessionIdleWarned": gettext_lazy("{actor} warned {owner} that a session with pod {pod} of {object} is idle."),
    "SessionKeepRequested": gettext_lazy("{actor} keeps a session with pod {pod} of {object} open. Reason: {reason}"),
    "GuestInvited": _guest_invited,
    "GuestAccepted": _guest_accepted,
    "GuestEnded": _guest_ended,
    "JobForked": gettext_lazy("{actor} forked {object} with the files of pod {pod} as job {name}."),
    "RecordingStarted": gettext_lazy(
        "{actor} joined the terminal of {owner} in pod {pod} of {object}, which is recorded from then on."
    ),
    "RecordingCut": gettext_lazy("{actor} saved a part of a recording of a terminal in pod {pod} of {object}."),
    "RecordingDeleted": gettext_lazy(
        "{actor} deleted a recording of the terminal of {owner} in pod {pod} of {object}."
    ),
    # flows, batches, schedules, demonstrations
    "JobTemplateCreated": _CREATED,
    "JobTemplateChanged": _if(
        "fields", gettext_lazy("{actor} changed {object}: {fields}."), gettext_lazy("{actor} changed {object}.")
    ),
    "JobTemplateDeleted": _DELETED,
    "FlowStarted": gettext_lazy("{actor} started {object}. Steps: {steps}."),
    "FlowStepStarted": gettext_lazy("{actor} started step {step} of {object} as job {name}."),
    "FlowStepRefused": gettext_lazy("{actor} could not start step {step} of {object}. {message}"),
    "FlowPhaseChanged": gettext_lazy("{actor} changed the state of {object} from {old} to {new}."),
    "FlowStopped": gettext_lazy("{actor} stopped {object}."),
    "FlowDeleted": _DELETED,
    "BatchSubmitted": gettext_lazy("{actor} submitted {object}. Jobs: {jobs}."),
    "BatchStopped": gettext_lazy("{actor} stopped {object}. Jobs: {jobs}."),
    "BatchEnded": gettext_lazy(
        "{actor} recorded the end of {object}. Completed jobs: {completed}, failed: {failed}, stopped: {stopped}."
    ),
    "BatchRetried": gettext_lazy("{actor} retried the failed jobs of {object}. Jobs: {jobs}."),
    "ScheduleCreated": gettext_lazy("{actor} created {object} with the times {cron} ({time_zone})."),
    "ScheduleChanged": _changed,
    "ScheduleSuspended": gettext_lazy("{actor} suspended {object}."),
    "ScheduleResumed": gettext_lazy("{actor} resumed {object}."),
    "ScheduleDeleted": _DELETED,
    "ScheduleRunStarted": _if(
        "by_hand",
        gettext_lazy("{actor} ran {object} by hand as job {job}."),
        gettext_lazy("{actor} ran {object} as due, as job {job}."),
    ),
    "ScheduleSkipped": gettext_lazy("{actor} skipped the run of {object} that was due at {due_at}."),
    "ScheduleMissed": gettext_lazy("{actor} missed runs of {object} from {first} to {last}. Runs: {count}."),
    "DemonstrationStarted": gettext_lazy("{actor} started {object}."),
    "DemonstrationEnded": gettext_lazy("{actor} ended {object}."),
    "SimulatedTeamsRemoved": gettext_lazy("{actor} removed the simulated teams of {object}."),
    # queues and priority classes
    "QueueCreated": _if("cluster", gettext_lazy("{actor} created {object} in cluster {cluster}."), _CREATED),
    "QueueChanged": _changed,
    "QueueOpened": gettext_lazy("{actor} opened {object}."),
    "QueueClosed": gettext_lazy("{actor} closed {object}."),
    "QueueDrained": gettext_lazy("{actor} set {object} to draining: it admits no more jobs."),
    "FederatedQueueCreated": gettext_lazy("{actor} created {object} of the queues {queues}."),
    "FederatedQueueChanged": _changed,
    "FederatedQueueDeleted": _DELETED,
    "PriorityClassCreated": gettext_lazy("{actor} created {object} with the value {value}."),
    "PriorityClassChanged": _changed,
    "PriorityClassDeleted": _DELETED,
    # clusters
    "ClusterCreated": gettext_lazy("{actor} added {object} of the kind {backend}."),
    "ClusterChanged": _changed,
    "ClusterRemoved": gettext_lazy("{actor} removed {object}."),
    "ClusterKeyAdded": gettext_lazy("{actor} set the credentials of {object} for {server} ({fingerprint})."),
    "ClusterKeyRemoved": gettext_lazy("{actor} removed the credentials of {object} ({fingerprint})."),
    "ClusterHealthChanged": _if(
        "reachable",
        gettext_lazy("{actor} found {object} reachable."),
        gettext_lazy("{actor} could not reach {object}. {message}"),
    ),
    "NodeChanged": _node,
    "NodeLabelled": _labelled,
    "NodeDrained": gettext_lazy("{actor} drained node {node} of {object}. Evicted pods: {pods}. Reason: {reason}"),
    "ClusterObjectsChanged": gettext_lazy("{actor} noticed changed objects of {object}: {kinds}."),
    **dict.fromkeys(("AlertRuleDeleted", "LabTraceDeleted", "PriceListDeleted", "ReportDeleted"), _DELETED),
    "AlertRuleCreated": _CREATED,
    "AlertRuleChanged": _changed,
    "AlertRuleSilenced": _if(
        "until",
        gettext_lazy("{actor} silenced {object} until {until}. Reason: {reason}"),
        gettext_lazy("{actor} ended the silence of {object}."),
    ),
    "AlertRuleSecretRenewed": gettext_lazy("{actor} renewed the webhook secret of {object}."),
    "AlertFired": gettext_lazy("{actor}: {object} fired for {about}. Value {value}, threshold {threshold}."),
    "AlertCleared": gettext_lazy("{actor}: {object} cleared for {about}. Value {value}, threshold {clear}."),
    "AlertActed": acted,
    "PriceListCreated": gettext_lazy("{actor} created {object}, valid from {begin}."),
    "AlertActionVetoed": gettext_lazy("{actor} forbade what {object} had announced about {about}."),
    "AnnouncementCreated": gettext_lazy("{actor} wrote {object}."),
    "AnnouncementDeleted": gettext_lazy("{actor} withdrew {object}."),
    "ReportCreated": _CREATED,
    "ReportChanged": _changed,
    "ReportDispatched": gettext_lazy("{actor} sent {object}. Recipients: {recipients}, left out: {left_out}."),
    "ReportStopped": gettext_lazy("{actor} stopped {object}: its owner cannot sign in, or may not see what it shows."),
    "PolicyChanged": gettext_lazy("{actor} put version {version} of the scheduling policy of {object} in force."),
    "PolicyLabStarted": gettext_lazy("{actor} started an experiment with the workload of {object}."),
    "PolicyLabCancelled": gettext_lazy("{actor} cancelled an experiment with the workload of {object}."),
    "PolicyLabDeleted": gettext_lazy("{actor} deleted an experiment with the workload of {object}."),
    "LabTraceUploaded": gettext_lazy("{actor} uploaded {object} with {jobs} jobs."),
    "EnvironmentCreated": _CREATED,
    "EnvironmentChanged": _changed,
    "LeaseAcquired": gettext_lazy("{actor} gave the lease of {object} to {holder} (epoch {epoch})."),
    # tenants and departments
    "TenantCreated": _CREATED,
    "TenantChanged": _changed,
    "DepartmentCreated": _CREATED,
    "DepartmentChanged": _changed,
    "QuotaSet": _changed,
    "IdlePolicyChanged": gettext_lazy("{actor} changed the idle rule of {object}: {changes}."),
    "LogsPurged": gettext_lazy("{actor} deleted logs of {object} after their retention. Jobs: {jobs}."),
    "HistoryPurged": gettext_lazy("{actor} deleted history of {object} after its retention. Jobs: {jobs}."),
    "MemberAdded": gettext_lazy("{actor} added {username} to {object} as {role}."),
    "MemberRemoved": gettext_lazy("{actor} removed {username} from {object}."),
    "MemberRoleChanged": gettext_lazy("{actor} changed the role of {username} in {object} from {old} to {new}."),
    "PersonInvited": _invited,
    "InvitationResent": _if(
        "email",
        gettext_lazy("{actor} sent {email} a new invitation to {object}."),
        gettext_lazy("{actor} renewed an invitation link to {object}."),
    ),
    "InvitationRevoked": _if(
        "email",
        gettext_lazy("{actor} revoked the invitation of {email} to {object}."),
        gettext_lazy("{actor} revoked an invitation link to {object}."),
    ),
    "InvitationAccepted": gettext_lazy("{username} accepted an invitation to {object}."),
    # people
    "UserCreated": gettext_lazy("{actor} added {object}."),
    "UserChanged": _changed,
    "PasswordChanged": _own(
        gettext_lazy("{actor} changed their password."), gettext_lazy("{actor} set the password of {object}.")
    ),
    "SignInLinkCreated": gettext_lazy("{actor} created a sign-in link for {object}."),
    "SignedIn": _signed_in,
    "OtherSessionsRevoked": _own(
        gettext_lazy("{actor} signed out their other sessions. Browsers: {browsers}."),
        gettext_lazy("{actor} signed out {object} everywhere. Browsers: {browsers}."),
    ),
    "SecondFactorAdded": gettext_lazy("{actor} set up an authenticator app for {object}."),
    "SecondFactorRemoved": _own(
        gettext_lazy("{actor} removed their authenticator app."),
        gettext_lazy("{actor} turned off two-factor authentication for {object}."),
    ),
    "SecurityKeyAdded": gettext_lazy("{actor} added the security key “{name}” for {object}."),
    "SecurityKeyRemoved": gettext_lazy("{actor} removed the security key “{name}” of {object}."),
    "RecoveryCodesGenerated": gettext_lazy("{actor} created new recovery codes for {object}."),
    "RecoveryCodeUsed": gettext_lazy("{actor} used a recovery code of {object}. Codes left: {left}."),
    "MailAddressChanged": _mail,
    "IdentityConnected": gettext_lazy("{actor} linked {object} to the identity provider {provider}."),
    "IdentityDisconnected": gettext_lazy("{actor} unlinked {object} from the identity provider {provider}."),
    "TokenCreated": _if(
        "is_sign_in",
        gettext_lazy("{actor} signed in from a program and got the access token “{name}”."),
        gettext_lazy("{actor} created the access token “{name}” for {object}, valid until {expires_at}."),
    ),
    "TokenRevoked": gettext_lazy("{actor} revoked the access token “{name}” of {object}."),
    "ImpersonationStarted": gettext_lazy("{actor} began to impersonate {object}. Reason: {reason}"),
    "ImpersonationEnded": gettext_lazy("{actor} stopped impersonating {object}."),
    # presets and the gallery
    "PresetSaved": gettext_lazy("{actor} saved {object}."),
    "PresetRenamed": gettext_lazy("{actor} renamed {object}. Its old name is {old}."),
    "PresetDefaultChanged": _if(
        "is_default",
        gettext_lazy("{actor} made {object} the default."),
        gettext_lazy("{actor} made {object} no longer the default."),
    ),
    "PresetDeleted": _DELETED,
    "TemplatePublished": gettext_lazy("{actor} published version {version} of {object}."),
    "TemplateWithdrawn": gettext_lazy("{actor} withdrew {object}."),
}
