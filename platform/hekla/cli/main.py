"""The command itself. Each word's module is imported when the word is used, so that `hekla` starts at once."""

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from hekla import __version__
from hekla.cli.failing import client_errors_as_failures
from hekla.cli.servers import Choice


class Words(click.Group):
    """A group whose commands are named by module: `word: (module, short help)`.

    A module with a dot in its name lies outside this folder.
    """

    def __init__(self, *args: Any, words: dict[str, tuple[str, str]], **more: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **more)
        self.words = words

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.words)

    def get_command(self, _ctx: click.Context, word: str) -> click.Command | None:
        if word not in self.words:
            return None
        module = self.words[word][0]
        command = getattr(import_module(module if "." in module else f"hekla.cli.{module}"), word.replace("-", "_"))
        assert isinstance(command, click.Command)  # noqa: S101  (the table below names commands only)
        return command

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  (what the command returns)
        with client_errors_as_failures():
            return super().invoke(ctx)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(word, text) for word, (_module, text) in self.words.items()])


_BENCHES = {
    "engine": ("hekla.bench.commands.engine", "Pods a second that the scheduling engine places."),
    "submit": ("hekla.bench.commands.submit", "From submission to the first running process."),
    "whatif": ("hekla.bench.commands.what_if", "From a question of what would be to its answer."),
    "react": ("hekla.bench.commands.react", "From a pod's exit to the action of its job's policy."),
    "cluster": ("hekla.bench.commands.cluster", "Binds a second on a Kubernetes cluster, beside others."),
    "console": ("hekla.bench.commands.console", "Pages, lists and submissions with many jobs."),
    "start": ("hekla.bench.commands.start", "From `manage.py up` to the link that it prints."),
    "idle": ("hekla.bench.commands.idle", "Processor and memory of a console at rest."),
}
_COMMANDS = {
    "login": ("login", "Keep a console's address and your token."),
    "whoami": ("login", "Which console, and who you are there."),
    "tokens": ("tokens", "List your tokens, what each is good for, and its last use."),
    "token": ("tokens", "Make a token, or revoke one."),
    "audit": ("audit", "Who did what, for admins and operators."),
    "roles": ("roles", "Permissions by role, for those who give roles."),
    "submit": ("submit", "Submit a job, or start a flow, from a manifest."),
    "what-if": ("what_if", "Say what would be if a job were submitted."),
    "convert": ("convert", "Write a job as another kind of manifest."),
    "clone": ("submit", "Submit a job once more, with changes."),
    "presets": ("submit", "List the presets that jobs may begin with."),
    "begin": ("submit", "Submit a job that begins with a preset."),
    "gallery": ("gallery", "List the templates that admins have prepared."),
    "fill": ("gallery", "Submit a job by filling in a template of the gallery."),
    "jobs": ("jobs", "List or count jobs, or act on many at once."),
    "job": ("jobs", "Show one job, its pods, and why it waits."),
    "waits": ("watching", "Why a job waited, from its submission on."),
    "receipts": ("watching", "What a job made room for, and what others gave up for it."),
    "exposure": ("watching", "What of a job other queues may take back."),
    "watch": ("jobs", "Follow a job until it ends."),
    "pod": ("pods", "Show every attempt of a pod, and why it failed."),
    "logs": ("logs", "Print what a job's pods wrote."),
    "abort": ("acts", "Stop a job; it can be resumed."),
    "resume": ("acts", "Let an aborted job go on."),
    "restart": ("acts", "Start a job, or a part of it, again."),
    "scale": ("scale", "Give a job's tasks more or fewer pods."),
    "priority": ("acts", "Give a job another priority."),
    "priority-classes": ("priorities", "List the priority classes that jobs may name."),
    "priority-class": ("priorities", "Make, change or delete a priority class."),
    "delete": ("acts", "Delete a finished job."),
    "flows": ("flows", "List flows, newest first."),
    "flow": ("flows", "Show one flow, its steps, and why they wait."),
    "stop": ("flows", "Stop a flow and its jobs."),
    "templates": ("flows", "List the templates that flows are made from."),
    "sweep": ("batches", "Submit a job many times with other parameters, or a file of many jobs."),
    "batches": ("batches", "List batches, newest first."),
    "batch": ("batches", "Show a batch, stop all of it, or retry what failed."),
    "schedules": ("schedules", "List schedules: jobs that recur."),
    "schedule": ("schedules", "Make a schedule, show it, run, suspend, resume or delete it."),
    "departments": ("departments", "List the departments that you head."),
    "department": ("departments", "Show a department: its tenants, and what they hold."),
    "notifications": ("notifications", "List what you were told of your jobs."),
    "notify": ("notifications", "Notification settings of a job."),
    "invite": ("invitations", "Invite a person to a tenant."),
    "invitations": ("invitations", "List the invitations that wait, or revoke one."),
    "people": ("people", "Bring people in by a table."),
    "reset-factor": ("people", "Turn off the second factor of somebody who lost it."),
    "queues": ("queues", "List the queues that you may submit to."),
    "queue": ("queues", "Show what a queue holds and deserves, and who is in line."),
    "spans": ("federated_queues", "List the names for queues of several clusters."),
    "span": ("federated_queues", "Make, change or delete such a name."),
    "quotas": ("quotas", "Show what a tenant and its members may have, or set it."),
    "clusters": ("clusters", "List, show, add, try or remove clusters."),
    "nodes": ("nodes", "List the machines and what is free on them."),
    "find": ("find", "Find anything by its name."),
    "policy": ("policy", "Show, try or change the scheduling policy of a cluster."),
    "replay": ("replay", "Replay recorded scenarios through the engine."),
    "completion": ("completion", "Let the shell complete words and names."),
    "bench": ("main", "Measure Hekla on this machine."),
}


@click.group("hekla", cls=Words, words=_COMMANDS)
@click.version_option(__version__, prog_name="hekla")
@click.option("--server", envvar="HEKLA_SERVER", metavar="URL", help="The console, as in http://127.0.0.1:8000.")
@click.option("--token", envvar="HEKLA_TOKEN", metavar="TOKEN", help="Your token; better kept by `hekla login`.")
@click.option("--home", envvar="HEKLA_HOME", type=click.Path(path_type=Path), hidden=True)
@click.pass_context
def hekla(ctx: click.Context, server: str | None, token: str | None, home: Path | None) -> None:
    """Jobs on machines that many share. On the machine of the console itself no sign-in is needed."""
    ctx.obj = Choice(server, token, home)


@click.group("bench", cls=Words, words=_BENCHES)
def bench() -> None:
    """Measure Hekla on this machine."""


def main() -> None:
    """What the installed script calls."""
    hekla(prog_name="hekla")
