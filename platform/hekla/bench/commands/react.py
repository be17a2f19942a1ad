"""`hekla bench react`: the time from a pod's exit to the action of its job's policy."""

import time
from datetime import datetime
from typing import Any
from uuid import uuid4

import click

from hekla.bench.commands import latencies
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import Choice

_EXIT = 3


_LABELS = {"action": "exit of the pod → restart of its job", "running": "exit of the pod → next attempt runs"}


@click.command("react")
@latencies.options
@click.option(
    "--seconds", type=click.FloatRange(0, 60), default=0.3, show_default=True, help="Seconds until each pod fails."
)
@click.pass_obj
def react(
    choice: Choice, jobs: int, warm_up: int, queue: str, tenant: str | None, seconds: float, as_json: bool
) -> None:
    """Measure restarts: submit jobs whose pod fails and whose policy restarts them once. Then delete them."""
    client = client_of(choice)
    runs = [_run(client, queue, tenant, seconds) for _ in range(warm_up + jobs)][warm_up:]
    facts = {"server": client.server.url, "queue": queue, "jobs": jobs, "warm_up": warm_up}
    head = f"{jobs} jobs in queue {queue}, one after another; by the console's own times, milliseconds"
    latencies.tell(head, _LABELS, runs, facts, as_json=as_json)


def _run(client: Client, queue: str, tenant: str | None, seconds: float) -> tuple[float, float]:
    """Milliseconds from the end of the pod to the policy's action, and to the start of the next attempt."""
    task = {
        "name": "main",
        "command": ["sh", "-c", f"sleep {seconds:g}; exit {_EXIT}"],
        "resources": {"cpu": "10m"},
        "env": {"HEKLA_SIM_SECONDS": f"{seconds:g}", "HEKLA_SIM_EXIT": str(_EXIT)},
        "grace_seconds": 1,
    }
    policies = [{"events": ["PodFailed"], "action": "RestartJob"}]
    name = f"bench-{uuid4().hex[:12]}"
    document = {"name": name, "queue": queue, "tasks": [task], "policies": policies, "max_retry": 1}
    uid = client.post("jobs", document, tenant=tenant)["job"]["uid"]
    ended, acted, again = _times(client, uid)
    client.delete(f"jobs/{uid}")
    return (acted - ended).total_seconds() * 1000, (again - ended).total_seconds() * 1000


def _times(client: Client, uid: str) -> tuple[datetime, datetime, datetime]:
    """The times when the pod ended, the job restarted, and the next attempt ran. Waits for the end of the job."""
    after, at = 0, dict[str, datetime]()
    deadline = time.monotonic() + latencies.GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        answer = client.get(f"jobs/{uid}/events", after=after, wait=10)
        after = answer["next_after"]
        for event in answer["events"]:
            if step := _step(event):
                at.setdefault(step, datetime.fromisoformat(event["at"]))
        if "over" in at:
            return at["ended"], at["acted"], at["again"]
    client.post(f"jobs/{uid}/actions", {"action": "AbortJob"})
    raise Failure(
        f"A job was not over within {latencies.GIVE_UP_SECONDS:.0f} s; it was aborted. Is queue or machine full?"
    )


def _step(event: dict[str, Any]) -> str:
    facts = event["payload"]
    if event["kind"] == "JobPhaseChanged":
        return {"restarting": "acted", "failed": "over"}.get(facts["new"], "")
    if event["kind"] == "PodPhaseChanged":
        return {("failed", 1): "ended", ("running", 2): "again"}.get((facts["new"], facts["attempt"]), "")
    return ""
