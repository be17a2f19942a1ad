"""The root command: a noun, then a verb. The module of a command is imported on use, so `hekla` starts at once."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from hekla import __version__
from hekla.cli.failing import client_errors_as_failures
from hekla.cli.servers import ServerOptions

Entry = tuple[str, str]
"""Where a command is, as `module:function`, and its short help. A name with a dot is outside this folder."""


class LazyGroup(click.Group):
    """A group that knows the names and short helps of its commands, and imports a command when it is used."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **more: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **more)
        self.entries = entries

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.entries:
            return None
        module, _colon, function = self.entries[name][0].partition(":")
        command = getattr(import_module(module if "." in module else f"hekla.cli.{module}"), function)
        assert isinstance(command, click.Command)  # noqa: S101  (the tables below name commands only)
        command.name = name
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_where, text) in self.entries.items()])


class Root(LazyGroup):
    """The nouns with their verbs, and a few commands without a noun."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_NOUNS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _NOUNS:
            text, verbs = _NOUNS[name]
            return LazyGroup(name, entries=verbs, help=text)
        return super().get_command(ctx, name)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  (what the command returns)
        with client_errors_as_failures():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Nouns (hekla NOUN VERB)"):
            formatter.write_dl([(name, f"{text} {', '.join(verbs)}") for name, (text, verbs) in _NOUNS.items()])
        super().format_commands(ctx, formatter)


_BENCHES: dict[str, Entry] = {
    "engine": ("hekla.bench.commands.engine:engine", "Pods per second that the scheduling engine places."),
    "lab": ("hekla.bench.commands.lab:lab", "A recorded week in the policy lab."),
    "submit": ("hekla.bench.commands.submit:submit", "Time from submission to the first running process."),
    "whatif": ("hekla.bench.commands.what_if:whatif", "Response time of a preview."),
    "react": ("hekla.bench.commands.react:react", "Time from a pod's exit to the action of its job's policy."),
    "cluster": (
        "hekla.bench.commands.cluster:cluster",
        "Binds per second on a Kubernetes cluster, compared to others.",
    ),
    "reconcile": (
        "hekla.bench.commands.reconcile:reconcile",
        "Reconciliations of a large cluster, by phase.",
    ),
    "explanations": (
        "hekla.bench.commands.explanations:explanations",
        "Whether offered changes start jobs, and predicted ranges hold.",
    ),
    "console": ("hekla.bench.commands.console:console", "Pages, lists and submissions with many jobs."),
    "operations": (
        "hekla.bench.commands.operations:operations",
        "Dashboards with measures of many days, and the cost of keeping them.",
    ),
    "proxy": ("hekla.bench.commands.proxy:proxy", "Ports and tools of pods in the browser, and a terminal."),
    "start": ("hekla.bench.commands.start:start", "Time from `manage.py up` to the link that it prints."),
    "idle": ("hekla.bench.commands.idle:idle", "CPU and memory of an idle console."),
}
_NOUNS: dict[str, tuple[str, dict[str, Entry]]] = {
    "job": (
        "Jobs.",
        {
            "list": ("jobs:list_jobs", "List or count jobs."),
            "show": ("jobs:show", "Show a job, its pods, and the pending reason."),
            "submit": ("submit:submit", "Submit a job, or start a flow, from a manifest."),
            "preview": ("what_if:preview", "Preview when a job would start, without submitting it."),
            "clone": ("submit:clone", "Submit a job again, with changes."),
            "convert": ("convert:convert", "Convert a job to another kind of manifest."),
            "compare": ("runs:compare", "Compare jobs: settings that differ, and metrics."),
            "watch": ("jobs:watch", "Follow a job until it ends."),
            "logs": ("logs:logs", "Print the logs of a job's pods."),
            "files": ("files:list_files", "List the files that a job wrote."),
            "download": ("files:download", "Download a file that a job wrote."),
            "explain": ("watching:explain", "Explain why a job was pending, from its submission on."),
            "show-evictions": ("watching:show_evictions", "Show the pods that were evicted for a job."),
            "show-risk": ("watching:show_risk", "Show the preemption risk of a job."),
            "scale": ("scale:scale", "Change the number of pods of a job's tasks."),
            "set-priority": ("acts:set_priority", "Change the priority of a job."),
            "set-notifications": ("notifications:set_notifications", "Change the notification settings of a job."),
            "gpu-activity": ("idleness:job_activity", "Show the use of a job's GPUs, and when idle ones end it."),
            "keep-gpus": ("idleness:keep_job", "Keep a job with idle GPUs for some hours."),
            "fork": ("sharing:fork", "Submit a copy of a job, with the files of a pod."),
            "ask-owner": ("stalls:ask_owner", "Ask the owner of a job to look at it."),
            "stalled": ("stalls:stalled", "List running pods without progress, with the evidence."),
            "abort": ("acts:abort", "Abort a job. It can be resumed."),
            "resume": ("acts:resume", "Resume an aborted job."),
            "restart": ("acts:restart", "Restart a job, or a part of it."),
            "debug": ("debugging:debug", "Continue where a pod failed."),
            "keep": ("debugging:keep", "Keep the files of a failed pod longer."),
            "discard": ("debugging:discard", "Delete the files of a failed pod."),
            "delete": ("acts:delete", "Delete a finished job."),
            "bulk": ("bulk:bulk", "Abort, resume, restart, prioritize or delete many jobs."),
        },
    ),
    "file": (
        "Files that jobs wrote.",
        {
            "archive": ("files:archive", "Download a folder as a zip archive."),
            "edit": ("file_editing:edit", "Edit a text file of a pod in your editor."),
            "find": ("files:find", "Find files by a part of their name."),
            "put": ("uploads:put", "Upload a file into the folder of a pod."),
            "show": ("files:show", "Show the beginning of a file."),
        },
    ),
    "session": (
        "Ports and tools of running pods in the browser.",
        {
            "open": ("sessions:open_session", "Open a port of a pod, or a tool in it."),
            "list": ("sessions:list_sessions", "List the open sessions with pods of a job."),
            "people": ("sessions:session_people", "List who has a session open."),
            "end": ("sessions:end_session", "End a session."),
            "activity": ("idleness:session_activity", "Show what keeps a session, and when it would end."),
            "keep": ("idleness:keep_session", "Keep an idle session for some hours."),
        },
    ),
    "share": (
        "Terminals and sessions that people share.",
        {
            "invite": ("sharing:invite", "Invite a person to your terminal, or to a session."),
            "list": ("sharing:list_invitations", "List the invitations to you, or of a job."),
            "accept": ("sharing:accept", "Accept an invitation."),
            "end": ("sharing:end_invitation", "Decline or revoke an invitation."),
        },
    ),
    "recording": (
        "Recordings of shared terminals.",
        {
            "list": ("sharing:list_recordings", "List the recordings of a job."),
            "save": ("sharing:save_recording", "Save a recording as a file."),
        },
    ),
    "pod": ("Pods.", {"show": ("pods:show", "Show every attempt of a pod, and why it failed.")}),
    "saved-template": (
        "Saved templates, which new jobs start from.",
        {
            "list": ("submit:list_saved_templates", "List saved templates."),
            "submit": ("submit:submit_saved_template", "Submit a job from a saved template."),
        },
    ),
    "gallery": (
        "Published templates, with locked fields.",
        {
            "list": ("gallery:list_templates", "List published templates."),
            "show": ("gallery:show", "Show the fields of a published template."),
            "submit": ("gallery:submit", "Submit a job from a published template."),
        },
    ),
    "batch": (
        "Many jobs in one submission.",
        {
            "list": ("batches:list_batches", "List batches, newest first."),
            "show": ("batches:show", "Show a batch and its jobs."),
            "submit": ("batches:submit", "Submit a parameter sweep, or a file of many jobs."),
            "stop": ("batches:stop", "Abort all unfinished jobs of a batch."),
            "retry": ("batches:retry", "Submit the failed jobs of a batch again."),
        },
    ),
    "flow": (
        "Jobs that depend on each other.",
        {
            "list": ("flows:list_flows", "List flows, newest first."),
            "show": ("flows:show", "Show a flow, its steps, and the pending reasons."),
            "stop": ("flows:stop", "Stop a flow and its jobs."),
        },
    ),
    "template": ("Job templates of flows.", {"list": ("flows:list_templates", "List job templates.")}),
    "schedule": (
        "Jobs that run on a schedule.",
        {
            "list": ("schedules:list_schedules", "List schedules."),
            "show": ("schedules:show", "Show a schedule and its last runs."),
            "create": ("schedules:create", "Create a schedule from a manifest."),
            "run": ("schedules:run", "Start a run now."),
            "suspend": ("schedules:suspend", "Suspend a schedule."),
            "resume": ("schedules:resume", "Resume a schedule."),
            "delete": ("schedules:delete", "Delete a schedule."),
        },
    ),
    "alert": (
        "Alerts and their rules.",
        {
            "list": ("alerts:list_alerts", "List what fires now."),
            "rules": ("alerts:list_rules", "List alert rules."),
            "measures": ("alerts:list_measures", "List what a rule can measure."),
            "create": ("alerts:create", "Create a rule from a file."),
            "edit": ("alerts:edit", "Change a rule."),
            "test": ("alerts:test", "Test a rule on present and past values."),
            "silence": ("alerts:silence", "Silence a rule for some hours."),
            "veto": ("alerts:veto", "Forbid changes that a rule has announced."),
            "history": ("alerts:history", "Show the states of a rule, and what it did."),
            "delete": ("alerts:delete", "Delete a rule."),
        },
    ),
    "price": (
        "Price lists: what an hour of a resource costs.",
        {
            "list": ("prices:list_prices", "List the price lists."),
            "show": ("prices:show", "Print the prices of a list."),
            "create": ("prices:create", "Add a price list."),
            "delete": ("prices:delete", "Delete a price list that has not begun."),
        },
    ),
    "announcement": (
        "Announcements of operators.",
        {
            "list": ("announcements:list_announcements", "List announcements."),
            "create": ("announcements:create", "Announce something to everybody or to tenants."),
            "withdraw": ("announcements:withdraw", "Withdraw an announcement."),
        },
    ),
    "report": (
        "Reports of the measures, as files or by mail.",
        {
            "list": ("reports:list_reports", "List the reports that you own or get."),
            "sections": ("reports:list_sections", "List what a report can show."),
            "create": ("reports:create", "Create a report from a file."),
            "edit": ("reports:edit", "Change a report."),
            "show": ("reports:show", "Print a report."),
            "download": ("reports:download", "Download a report as HTML or PDF."),
            "send": ("reports:send", "Send a report now."),
            "history": ("reports:history", "Show to whom a report was sent, and failures."),
            "leave": ("reports:leave", "Take yourself off the recipients of a report."),
            "pause": ("reports:pause", "Pause or resume a report."),
            "delete": ("reports:delete", "Delete a report."),
        },
    ),
    "queue": (
        "Queues.",
        {
            "list": ("queues:list_queues", "List the queues that you may use."),
            "show": ("queues:show", "Show a queue's shares and its pending jobs."),
            "share": ("queue_share:share", "Show why a queue deserves what it deserves."),
            "preview": ("queues:preview", "Preview a change of a queue's settings."),
            "edit": ("queues:edit", "Change, open, close or drain a queue."),
        },
    ),
    "federated-queue": (
        "Queues that span several clusters.",
        {
            "list": ("federated_queues:list_federated_queues", "List federated queues."),
            "set": ("federated_queues:set_federated_queue", "Create or change a federated queue."),
            "delete": ("federated_queues:delete", "Delete a federated queue."),
        },
    ),
    "cluster": (
        "Clusters.",
        {
            "list": ("clusters:list_clusters", "List clusters and their state."),
            "show": ("clusters:show", "Show a cluster's state and configuration."),
            "set": ("clusters:set_cluster", "Add a cluster, or change one."),
            "metrics-token": ("clusters:metrics_token", "Set the token for the Prometheus of a cluster."),
            "check": ("clusters:check", "Check the connection to a cluster."),
            "delete": ("clusters:delete", "Delete a cluster, or its credentials."),
        },
    ),
    "node": (
        "Nodes.",
        {
            "list": ("nodes:list_nodes", "List nodes and their free resources."),
            "drain": ("nodes:drain", "Cordon a node and evict its pods, or preview that."),
            "label": ("nodes:label", "Set or remove labels of a node for Hekla's scheduler, or print them."),
            "uncordon": ("nodes:uncordon", "Let pods start on a node again."),
        },
    ),
    "policy": (
        "Scheduling policies of clusters.",
        {
            "show": ("policy:show", "Print the active policy of a cluster."),
            "preview": ("policy:preview", "Preview a policy, without a change."),
            "set": ("policy:set_policy", "Activate a policy."),
        },
    ),
    "decisions": (
        "Decisions of the scheduler, cycle by cycle.",
        {
            "list": ("decisions:list_cycles", "List the cycles of a cluster that decided something."),
            "show": ("decisions:show", "Show what each action of a cycle did, or how it judged a job."),
            "download": ("decisions:download", "Save a recorded cycle as a file."),
            "replay": ("decisions:replay_cycle", "Run the engine on a recorded cycle, and compare."),
        },
    ),
    "lab": (
        "Experiments: a recorded workload under another policy.",
        {
            "run": ("lab:run", "Run an experiment on the workload of a cluster."),
            "list": ("lab:list_experiments", "List experiments, newest first."),
            "show": ("lab:show", "Show an experiment and its result."),
            "cancel": ("lab:cancel", "Cancel an experiment."),
            "delete": ("lab:delete", "Delete an experiment that is over."),
            "upload": ("lab_uploads:upload", "Upload a file of another scheduler as a workload."),
            "traces": ("lab_uploads:list_traces", "List uploaded files of other schedulers."),
            "delete-trace": ("lab_uploads:delete_trace", "Delete an uploaded file of another scheduler."),
            "trace": ("lab_traces:trace", "Run the jobs of another scheduler's file, on this machine."),
        },
    ),
    "priority-class": (
        "Priority classes.",
        {
            "list": ("priorities:list_classes", "List the priority classes that you may use."),
            "set": ("priorities:set_class", "Create or change a priority class."),
            "delete": ("priorities:delete", "Delete a priority class."),
        },
    ),
    "quota": (
        "Quotas of tenants and members.",
        {
            "show": ("quotas:show", "Show the quotas of a tenant, and their use."),
            "set": ("quotas:set_quota", "Change a quota."),
            "files": ("tenant_files:files", "Show or limit the files of a tenant's jobs."),
        },
    ),
    "department": (
        "Departments: groups of tenants.",
        {
            "list": ("departments:list_departments", "List departments."),
            "show": ("departments:show", "Show a department, its tenants, and their use."),
        },
    ),
    "invitation": (
        "Invitations to tenants.",
        {
            "list": ("invitations:list_invitations", "List open invitations."),
            "create": ("invitations:create", "Invite a person to a tenant."),
            "revoke": ("invitations:revoke", "Revoke an invitation."),
        },
    ),
    "person": (
        "People with an account.",
        {
            "import": ("people:import_people", "Import people from a CSV file."),
            "reset-factor": ("people:reset_factor", "Turn off the two-factor authentication of a person."),
        },
    ),
    "role": ("Roles.", {"list": ("roles:list_roles", "List roles and their permissions.")}),
    "token": (
        "Access tokens.",
        {
            "list": ("tokens:list_tokens", "List your tokens, their scopes and last use."),
            "create": ("tokens:create", "Create a token."),
            "revoke": ("tokens:revoke", "Revoke a token."),
        },
    ),
    "notification": ("Notifications.", {"list": ("notifications:list_notifications", "List your notifications.")}),
    "measures": (
        "Measures of clusters, queues and tenants.",
        {
            "cost": ("costs:cost", "Show what held resources cost, and what the month will cost."),
            "failures": ("job_measures:failures", "Show how many jobs failed, why and where."),
            "gpu-time": ("measures:gpu_time", "Show what became of the GPU time: used, wasted, free."),
            "overview": ("measures:overview", "Show the figures to look at first."),
            "queues": ("queue_use:queue_use", "Show the GPUs that queues deserved and held over time."),
            "unused": ("stalls:unused", "List who holds GPUs now without using them."),
            "sessions": ("session_use:session_use", "Show the open sessions, and the GPUs that they hold."),
            "waiting": ("job_measures:waiting", "Show how long jobs waited, and how many started and ended."),
        },
    ),
    "audit": ("The audit log.", {"list": ("audit:list_events", "List events of the audit log.")}),
}
_ALONE: dict[str, Entry] = {
    "login": ("login:login", "Save a console's address and your token."),
    "whoami": ("login:whoami", "Show which console you use, and who you are there."),
    "ssh": ("ssh:ssh", "Open a shell in a pod, or run a command in it, by SSH."),
    "ssh-config": ("ssh:ssh_config", "Write settings for ssh, scp, rsync and editors."),
    "ssh-proxy": ("ssh_proxy:ssh_proxy", "Connect `ssh` to a pod; the settings for ssh name it."),
    "system": ("system:show", "Show the state of the console itself."),
    "find": ("find:find", "Find anything by its name."),
    "replay": ("replay:replay", "Replay recorded scenarios through the engine."),
    "completion": ("completion:completion", "Print a completion script for your shell."),
    "doctor": ("hekla.launcher.doctor.command:doctor", "Check this machine for what Hekla needs."),
    "bench": ("main:bench", "Measure Hekla on this machine."),
}


@click.group("hekla", cls=Root, entries=_ALONE)
@click.version_option(__version__, prog_name="hekla")
@click.option("--server", envvar="HEKLA_SERVER", metavar="URL", help="The console, for example http://127.0.0.1:8000.")
@click.option("--token", envvar="HEKLA_TOKEN", metavar="TOKEN", help="Your token. Better save it with `hekla login`.")
@click.option("--home", envvar="HEKLA_HOME", type=click.Path(path_type=Path), hidden=True)
@click.pass_context
def hekla(ctx: click.Context, server: str | None, token: str | None, home: Path | None) -> None:
    """Jobs on shared machines. On the console's own machine you need no token."""
    ctx.obj = ServerOptions(server, token, home)


@click.group("bench", cls=LazyGroup, entries=_BENCHES)
def bench() -> None:
    """Measure Hekla on this machine."""


def main() -> None:
    """The entry point of the installed script."""
    hekla(prog_name="hekla")
