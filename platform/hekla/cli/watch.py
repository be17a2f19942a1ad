"""Following a job in a terminal: its phases, its pods and their logs, until it ends."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import click

from hekla.cli import output
from hekla.client import Client, RateLimitError, UnreachableError
from hekla.lib.text import strip_control_codes

EXIT_INTERRUPTED = 130
MOST_TAILS = 20
_COLOURS = ("cyan", "magenta", "green", "blue", "yellow", "bright_red")
_QUIET_SECONDS, _BUSY_SECONDS, _LAST_WORDS_SECONDS = 20.0, 0.4, 5.0
_PATIENCE_SECONDS = 60.0

_ENDS = {"completed", "failed", "aborted", "terminated", "succeeded", "lost"}

Pod = tuple[str, int, int]


def follow(client: Client, job: Mapping[str, Any]) -> int:
    """Watch a job until it ends. Returns the exit status: 0 if it completed."""
    try:
        phase = _Watch(client, job).run()
    except KeyboardInterrupt:
        click.echo(
            f"\nStopped watching. {job['name']} keeps running. Show it: hekla job show {job['name']}. ", nl=False
        )
        click.echo(f"To stop it: hekla job abort {job['name']}")
        return EXIT_INTERRUPTED
    return 0 if phase == "completed" else 1


@dataclass
class Tail:
    """The read position in a pod's log; `rest` is the beginning of an incomplete line."""

    prefix: str
    offset: int = 0
    rest: str = ""
    complete: bool = False


@dataclass
class _Watch:
    client: Client
    job: Mapping[str, Any]
    phase: str = "pending"
    after: int = 0
    tails: dict[Pod, Tail] = field(default_factory=dict)
    left_out: bool = False

    def __post_init__(self) -> None:
        self._colours = cycle(_COLOURS)
        self._width = max(
            (len(f"{task['name']}-{task.get('replicas', 1) - 1}") for task in self.job["spec"]["tasks"]), default=0
        )

    def run(self) -> str:
        """Watch until the job ends. Returns its last phase."""
        while not self._is_over():
            self._patiently(self._hear, _BUSY_SECONDS if self._reads() else _QUIET_SECONDS)
        deadline = time.monotonic() + _LAST_WORDS_SECONDS
        while self._reads() and time.monotonic() < deadline:
            self._patiently(self._hear, _BUSY_SECONDS)
        for tail in self.tails.values():
            self._flush(tail)
        return self.phase

    def _is_over(self) -> bool:
        return self.phase in _ENDS

    def _reads(self) -> bool:
        return any(not tail.complete for tail in self.tails.values())

    def _patiently(self, step: Any, seconds: float) -> None:  # noqa: ANN401  (a method of ours)
        """Retry while the server is unreachable, for example restarts, or refuses too many requests."""
        deadline, has_warned = time.monotonic() + _PATIENCE_SECONDS, False
        while True:
            try:
                return step(seconds)  # type: ignore[no-any-return]
            except RateLimitError as error:
                time.sleep(error.retry_after or 1)
            except UnreachableError:
                if time.monotonic() > deadline:
                    raise
                if not has_warned:
                    click.secho("The console does not answer; waiting for it …", fg="yellow", err=True)
                has_warned = True
                time.sleep(1)

    def _hear(self, seconds: float) -> None:
        answer = self.client.get(f"jobs/{self.job['uid']}/events", after=self.after, wait=seconds)
        for place, event in enumerate(answer["events"], start=1):
            if event["kind"] != "JobUnschedulable" or place == len(answer["events"]):  # earlier reasons are out of date
                self._print(event)
        self.after = answer["next_after"]
        self._read_all()

    def _print(self, event: dict[str, Any]) -> None:
        facts = event["payload"]
        if facts.get("new") in _ENDS:
            self._read_all()  # the last log lines come before the end
        if event["kind"] == "JobPhaseChanged":
            self.phase = facts["new"]
        if event["kind"] == "PodPhaseChanged" and facts["new"] == "running":
            self._open(facts)
        if event["sentence"]:
            clock = click.style(output.moment(event["at"])[11:], dim=True)
            colour = output.COLOURS.get(str(facts.get("new")))
            click.echo(f"{clock} {click.style(strip_control_codes(event['sentence']), fg=colour)}")

    def _open(self, facts: dict[str, Any]) -> None:
        pod = (facts["task"], facts["index"], facts["attempt"])
        if len(self.tails) < MOST_TAILS or pod in self.tails:
            prefix = click.style(f"{_name(facts):<{self._width}} | ", fg=next(self._colours))
            self.tails.setdefault(pod, Tail(prefix))
        elif not self.left_out:
            self.left_out = True
            click.secho(f"(Logs of the first {MOST_TAILS} pods only; the others: hekla job logs.)", fg="yellow")

    def _read_all(self) -> None:
        for pod, tail in self.tails.items():
            self._read(pod, tail)

    def _read(self, pod: Pod, tail: Tail) -> None:
        task, index, attempt = pod
        where = f"jobs/{self.job['uid']}/pods/{task}/{index}/log"
        while not tail.complete:
            piece = self.client.get(where, offset=tail.offset, attempt=attempt)
            *lines, tail.rest = (tail.rest + piece["text"]).split("\n")
            for line in lines:
                click.echo(tail.prefix + strip_control_codes(line))
            tail.complete = piece["complete"]
            if piece["next_offset"] == tail.offset:
                break
            tail.offset = piece["next_offset"]

    def _flush(self, tail: Tail) -> None:
        if tail.rest:
            click.echo(tail.prefix + strip_control_codes(tail.rest))


def _name(facts: dict[str, Any]) -> str:
    return f"{facts['task']}-{facts['index']}"
