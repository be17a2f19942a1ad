"""The command itself. Each word's module is imported when the word is used, so that `hekla` starts at once."""

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from hekla import __version__
from hekla.cli.servers import Choice


class Words(click.Group):
    """A group whose commands are named by module: `word: (module, short help)`."""

    def __init__(self, *args: Any, words: dict[str, tuple[str, str]], **more: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **more)
        self.words = words

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.words)

    def get_command(self, _ctx: click.Context, word: str) -> click.Command | None:
        if word not in self.words:
            return None
        command = getattr(import_module(f"hekla.cli.{self.words[word][0]}"), word)
        assert isinstance(command, click.Command)  # noqa: S101  (the table below names commands only)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(word, text) for word, (_module, text) in self.words.items()])


_BENCHES = {
    "engine": ("bench.engine", "Pods a second that the scheduling engine places."),
    "submit": ("bench.submit", "From submission to the first running process."),
    "react": ("bench.react", "From a pod's exit to the action of its job's policy."),
}
_COMMANDS = {
    "login": ("login", "Keep a console's address and your token."),
    "whoami": ("login", "Which console, and who you are there."),
    "submit": ("submit", "Submit a job, or start a flow, from a manifest."),
    "convert": ("convert", "Write a job as another kind of manifest."),
    "clone": ("submit", "Submit a job once more under another name."),
    "jobs": ("jobs", "List jobs, newest first."),
    "job": ("jobs", "Show one job, its pods, and why it waits."),
    "watch": ("jobs", "Follow a job until it ends."),
    "pod": ("pods", "Show every attempt of a pod, and why it failed."),
    "logs": ("logs", "Print what a job's pods wrote."),
    "abort": ("acts", "Stop a job; it can be resumed."),
    "resume": ("acts", "Let an aborted job go on."),
    "restart": ("acts", "Start a job, or a part of it, again."),
    "scale": ("scale", "Give a job's tasks more or fewer pods."),
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
    "queues": ("places", "List the queues that you may submit to."),
    "nodes": ("places", "List the machines and what is free on them."),
    "replay": ("replay", "Replay recorded scenarios through the engine."),
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
