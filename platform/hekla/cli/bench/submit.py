"""`hekla bench submit`: how long it takes from a submission to its first running process, on a console that runs."""

import json
import statistics
import time
from datetime import datetime
from typing import Any
from uuid import uuid4

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import Choice

_GIVE_UP_SECONDS = 60.0


@click.command("submit")
@click.option("--jobs", type=click.IntRange(1, 1000), default=20, show_default=True, help="One after another.")
@click.option("--warm-up", type=click.IntRange(0, 100), default=2, show_default=True, help="Jobs before, not counted.")
@click.option("--queue", default="default", show_default=True, help="Where to submit.")
@click.option("--tenant", help="For which tenant (short name).")
@click.option("--seconds", type=click.FloatRange(0, 60), default=0.2, show_default=True, help="How long each runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def submit(
    choice: Choice, jobs: int, warm_up: int, queue: str, tenant: str | None, seconds: float, as_json: bool
) -> None:
    """Submit jobs of one pod that sleeps, one after another, over REST; delete them again."""
    client = client_of(choice)
    runs = [_run(client, queue, tenant, seconds) for _ in range(warm_up + jobs)][warm_up:]
    figures: dict[str, Any] = {"server": client.server.url, "queue": queue, "jobs": jobs, "warm_up": warm_up}
    for name, place in (("events", 0), ("wall", 1)):
        taken = sorted(run[place] for run in runs)
        figures[f"{name}_ms_median"] = round(statistics.median(taken), 1)
        figures[f"{name}_ms_p90"] = round(taken[min(len(taken) - 1, int(0.9 * len(taken)))], 1)
        figures[f"{name}_ms_max"] = round(taken[-1], 1)
    if as_json:
        click.echo(json.dumps(figures))
        return
    click.echo(f"{jobs} jobs in queue {queue}, one after another; submission → process running, milliseconds")
    rows = [
        (label, *(figures[f"{name}_ms_{figure}"] for figure in ("median", "p90", "max")))
        for name, label in (("events", "by the console's own times"), ("wall", "until this client knew"))
    ]
    output.table(("", "MEDIAN", "P90", "MAX"), rows, "")


def _run(client: Client, queue: str, tenant: str | None, seconds: float) -> tuple[float, float]:
    """Milliseconds by the events' times, and by this machine's clock from the request to the news."""
    task = {"name": "main", "command": ["sleep", f"{seconds:g}"], "resources": {"cpu": "10m"}, "grace_seconds": 1}
    document = {"name": f"bench-{uuid4().hex[:12]}", "queue": queue, "tasks": [task]}
    began = time.perf_counter()
    uid = client.post("jobs", document, tenant=tenant)["job"]["uid"]
    submitted, running, heard = _times(client, uid)
    client.delete(f"jobs/{uid}")
    return (running - submitted).total_seconds() * 1000, (heard - began) * 1000


def _times(client: Client, uid: str) -> tuple[datetime, datetime, float]:
    """When it was submitted, when it ran, and when we knew; returns once the job is over."""
    after, submitted, running, heard = 0, None, None, 0.0
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        answer = client.get(f"jobs/{uid}/events", after=after, wait=10)
        after = answer["next_after"]
        for event in answer["events"]:
            at, facts = datetime.fromisoformat(event["at"]), event["payload"]
            if event["kind"] == "JobSubmitted":
                submitted = at
            if event["kind"] == "PodPhaseChanged" and facts["new"] == "running" and running is None:
                running, heard = at, time.perf_counter()
            if event["kind"] == "JobPhaseChanged" and facts["new"] == "failed":
                raise Failure(f"The job failed: {facts['message'] or facts['reason']}")
            if event["kind"] == "JobPhaseChanged" and facts["new"] == "completed" and submitted and running:
                return submitted, running, heard
    client.post(f"jobs/{uid}/actions", {"action": "AbortJob"})
    raise Failure(f"A job did not run within {_GIVE_UP_SECONDS:.0f} s; it was aborted. Is queue or machine full?")
