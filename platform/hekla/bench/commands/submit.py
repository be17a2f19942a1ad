"""`hekla bench submit`: the time from a submission to its first running process, on a running console."""

import time
from datetime import datetime
from uuid import uuid4

import click

from hekla.bench.commands import latencies
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import Choice

_LABELS = {"events": "by the console's own times", "wall": "until this client knew"}


@click.command("submit")
@latencies.options
@click.option("--seconds", type=click.FloatRange(0, 60), default=0.2, show_default=True, help="Run time of each job.")
@click.pass_obj
def submit(
    choice: Choice, jobs: int, warm_up: int, queue: str, tenant: str | None, seconds: float, as_json: bool
) -> None:
    """Measure submissions over REST: submit jobs of one sleeping pod one after another. Then delete them."""
    client = client_of(choice)
    runs = [_run(client, queue, tenant, seconds) for _ in range(warm_up + jobs)][warm_up:]
    facts = {"server": client.server.url, "queue": queue, "jobs": jobs, "warm_up": warm_up}
    head = f"{jobs} jobs in queue {queue}, one after another; submission → process running, milliseconds"
    latencies.tell(head, _LABELS, runs, facts, as_json=as_json)


def _run(client: Client, queue: str, tenant: str | None, seconds: float) -> tuple[float, float]:
    """Milliseconds by the times of the events, and by this client's clock from the request to the event's arrival."""
    task = {"name": "main", "command": ["sleep", f"{seconds:g}"], "resources": {"cpu": "10m"}, "grace_seconds": 1}
    document = {"name": f"bench-{uuid4().hex[:12]}", "queue": queue, "tasks": [task]}
    began = time.perf_counter()
    uid = client.post("jobs", document, tenant=tenant)["job"]["uid"]
    submitted, running, heard = _times(client, uid)
    client.delete(f"jobs/{uid}")
    return (running - submitted).total_seconds() * 1000, (heard - began) * 1000


def _times(client: Client, uid: str) -> tuple[datetime, datetime, float]:
    """The times of submission, of the first running pod, and of its event's arrival. Waits for the end of the job."""
    after, submitted, running, heard = 0, None, None, 0.0
    deadline = time.monotonic() + latencies.GIVE_UP_SECONDS
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
    raise Failure(
        f"A job did not run within {latencies.GIVE_UP_SECONDS:.0f} s; it was aborted. Is queue or machine full?"
    )
